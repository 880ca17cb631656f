package io.orbitkv.client;

import java.time.Duration;
import java.util.Optional;

/**
 * A publish in progress, of a {@link ReconnectingRegistration}. It ends also when the Manager goes
 * away. Dropping the handle cancels nothing. Thread-safe.
 */
public final class SaveHandle {
  private final PublishHandle publish;

  SaveHandle(PublishHandle publish) {
    this.publish = publish;
  }

  /** Slot and generation of its grant record. */
  public long operationId() {
    return publish.operationId();
  }

  /**
   * Waits until the blocks are visible or refused, at first by copying on this thread.
   *
   * @param timeout longest wait; zero only looks
   * @return how it ended; empty while it is pending, which proves nothing: neither that the blocks
   *     were stored, nor that they were not, nor that the pages are free
   */
  public Optional<PublishResult> waitSave(Duration timeout) {
    return Optional.ofNullable(publish.await(timeout));
  }

  /** True once {@link #waitSave} would return at once. */
  public boolean isDone() {
    return publish.isDone();
  }

  /** True once the source pages are the caller's again, whatever happens next. */
  public boolean pagesFree() {
    return publish.pagesFree();
  }

  /** Asks for the end; {@link #waitSave} tells when it has come. */
  public void cancel() {
    publish.cancel();
  }
}
