package io.orbitkv.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/** Bounded waits that an interrupt does not cut short; the thread is interrupted afterwards. */
final class Uninterruptibly {
  private Uninterruptibly() {}

  /** Waits for the end of a thread; false when it still runs after the time given. */
  static boolean join(Thread thread, long timeoutNs) {
    long deadline = System.nanoTime() + timeoutNs;
    boolean interrupted = false;
    try {
      while (true) {
        try {
          long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
          thread.join(Math.max(1, leftMs));
          return !thread.isAlive();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      restore(interrupted);
    }
  }

  /**
   * Waits for a result.
   *
   * @throws TimeoutException when it has not come after the time given
   * @throws ExecutionException when it never will
   */
  static <T> T get(CompletableFuture<T> future, long timeoutNs)
      throws ExecutionException, TimeoutException {
    long deadline = System.nanoTime() + timeoutNs;
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return future.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      restore(interrupted);
    }
  }

  /** Parks, also where the thread has been interrupted before. */
  static void park(Object blocker, long ns) {
    boolean interrupted = Thread.interrupted();
    LockSupport.parkNanos(blocker, ns);
    restore(interrupted);
  }

  private static void restore(boolean interrupted) {
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
