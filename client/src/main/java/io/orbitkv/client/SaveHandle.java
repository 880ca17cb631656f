package io.orbitkv.client;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.Optional;

/**
 * A publish in progress, of a {@link ReconnectingRegistration}. It ends also when the Manager goes
 * away. A handle counts towards the 1,024 publishes and 32 MiB of a process until the publish has
 * ended and the handle is closed, or found unreachable. Letting go of it cancels nothing.
 * Thread-safe.
 */
public final class SaveHandle implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final PublishHandle publish;
  private final Cleaner.Cleanable charge;

  SaveHandle(PublishHandle publish, SaveBudget.Charge charge) {
    this.publish = publish;
    this.charge = CLEANER.register(this, charge::release);
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

  /** Lets go of the handle, which cancels nothing. Idempotent; the handle stays usable. */
  @Override
  public void close() {
    charge.clean();
  }
}
