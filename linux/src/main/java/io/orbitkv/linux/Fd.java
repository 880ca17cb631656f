package io.orbitkv.linux;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * An owned file descriptor, closed exactly once. Thread-safe; but a thread that uses the number
 * while another closes it may hit a stranger's file, so who shares a descriptor orders the two.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/close.2.html">close(2)</a>
 */
public final class Fd implements AutoCloseable {
  private static final int NONE = -1;

  private final AtomicInteger raw;

  private Fd(int raw) {
    this.raw = new AtomicInteger(raw);
  }

  /**
   * Takes over an open descriptor.
   *
   * @throws IllegalArgumentException when {@code raw} is negative
   */
  public static Fd own(int raw) {
    if (raw < 0) {
      throw new IllegalArgumentException("not a descriptor: fd=" + raw);
    }
    return new Fd(raw);
  }

  /**
   * The descriptor's number.
   *
   * @throws IllegalStateException after {@link #close()} or {@link #release()}
   */
  public int value() {
    int value = raw.get();
    if (value == NONE) {
      throw new IllegalStateException("descriptor is closed");
    }
    return value;
  }

  /**
   * Hands the descriptor to the caller, who closes it; this object is as closed afterwards.
   *
   * @throws IllegalStateException after {@link #close()} or {@link #release()}
   */
  public int release() {
    int value = raw.getAndSet(NONE);
    if (value == NONE) {
      throw new IllegalStateException("descriptor is closed");
    }
    return value;
  }

  /** Idempotent. An error is ignored: Linux frees the number whatever close(2) returns. */
  @Override
  public void close() {
    int value = raw.getAndSet(NONE);
    if (value != NONE) {
      FileCalls.close(value);
    }
  }

  @Override
  public String toString() {
    return "Fd[" + raw.get() + "]";
  }
}
