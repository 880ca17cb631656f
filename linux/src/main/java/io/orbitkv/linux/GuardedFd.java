package io.orbitkv.linux;

import java.lang.foreign.Arena;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A descriptor that threads use and any thread may close: the number is closed once the last thread
 * has left its call, so no call ever meets a number that was closed and given away. Thread-safe.
 *
 * <p>One word holds the number of users and, in the sign, whether it is closed. Closing does not
 * end a wait in progress; the owner does that, as by shutdown(2), or the wait's bound does.
 */
final class GuardedFd {
  private static final int CLOSED = Integer.MIN_VALUE;

  private final Fd fd;
  private final int value;
  private final Arena memory;
  private final AtomicInteger state = new AtomicInteger();

  GuardedFd(Fd fd) {
    this(fd, null);
  }

  /** A descriptor with the arena of what its calls use, closed after it; null for none. */
  GuardedFd(Fd fd, Arena memory) {
    this.fd = fd;
    this.memory = memory;
    this.value = fd.value();
  }

  /** Starts a use, which {@link #leave()} ends; false when closed. */
  boolean tryEnter() {
    int now = state.get();
    while (now >= 0) {
      if (state.compareAndSet(now, now + 1)) {
        return true;
      }
      now = state.get();
    }
    return false;
  }

  /**
   * As {@link #tryEnter()}.
   *
   * @return the descriptor's number
   * @throws IllegalStateException when closed
   */
  int enter() {
    if (!tryEnter()) {
      throw new IllegalStateException("descriptor is closed");
    }
    return value;
  }

  void leave() {
    if (state.decrementAndGet() == CLOSED) {
      release();
    }
  }

  /** The number, open only between {@link #tryEnter()} and {@link #leave()}. */
  int raw() {
    return value;
  }

  /**
   * The number, for registration elsewhere.
   *
   * @throws IllegalStateException when closed
   */
  int value() {
    if (!isOpen()) {
      throw new IllegalStateException("descriptor is closed");
    }
    return value;
  }

  boolean isOpen() {
    return state.get() >= 0;
  }

  /** Idempotent: refuses new uses; closes now, or when the last user leaves. */
  void close() {
    if (state.getAndUpdate(now -> now | CLOSED) == 0) {
      release();
    }
  }

  private void release() {
    fd.close();
    if (memory != null) {
      memory.close();
    }
  }
}
