package io.orbitkv.client;

import java.time.Duration;

/** A publish in progress. Dropping the handle cancels nothing. Thread-safe. */
public final class PublishHandle {
  private final PublishOperation operation;
  private final OperationHandle handle;

  PublishHandle(PublishOperation operation, OperationHandle handle) {
    this.operation = operation;
    this.handle = handle;
  }

  /** Slot and generation of its grant record. */
  public long operationId() {
    return operation.operationId();
  }

  /**
   * Waits until the blocks are visible or refused, at first by copying on this thread.
   *
   * @return how it ended; null when the time has passed or the thread was interrupted, which proves
   *     nothing about the pages
   */
  public PublishResult await(Duration timeout) {
    handle.await(timeout);
    return operation.result();
  }

  /** True once {@link #await} would return at once. */
  public boolean isDone() {
    return operation.isDone();
  }

  /** True once the source pages are the caller's again, whatever happens next. */
  public boolean pagesFree() {
    return operation.pagesFree();
  }

  /** Asks for the end; {@link #await} tells when it has come. */
  public void cancel() {
    handle.cancel();
  }
}
