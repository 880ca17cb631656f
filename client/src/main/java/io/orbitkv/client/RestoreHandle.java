package io.orbitkv.client;

import java.time.Duration;

/** A restore in progress. Dropping the handle cancels nothing. Thread-safe. */
public final class RestoreHandle {
  private final RestoreOperation operation;
  private final OperationHandle handle;

  RestoreHandle(RestoreOperation operation, OperationHandle handle) {
    this.operation = operation;
    this.handle = handle;
  }

  /** Slot and generation of its grant record. */
  public long operationId() {
    return operation.operationId();
  }

  /**
   * Waits for the end, at first by copying on this thread.
   *
   * @return how it ended; null when the time has passed or the thread was interrupted, which proves
   *     nothing about the pages
   */
  public RestoreResult await(Duration timeout) {
    handle.await(timeout);
    return operation.result();
  }

  /** True once {@link #await} would return at once. */
  public boolean isDone() {
    return operation.isDone();
  }

  /** True once the target pages are the caller's again, whatever happens next. */
  public boolean pagesFree() {
    return operation.pagesFree();
  }

  /**
   * Waits until a layer has arrived in every page.
   *
   * @param layer index of the layer in each group
   * @return false when the time has passed, or the restore ended without it
   */
  public boolean awaitLayer(int layer, Duration timeout) {
    handle.awaitPart(() -> operation.layersDone() > layer, timeout);
    return operation.layersDone() > layer;
  }

  /** Layers that have arrived in every page: the first so many. */
  public int layersArrived() {
    return operation.layersDone();
  }

  /** Asks for the end; {@link #await} tells when it has come. */
  public void cancel() {
    handle.cancel();
  }
}
