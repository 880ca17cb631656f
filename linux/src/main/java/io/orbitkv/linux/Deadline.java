package io.orbitkv.linux;

/** Bounds of waits, as values of {@link System#nanoTime()}. */
final class Deadline {
  private static final long NS_PER_MS = 1_000_000;

  private Deadline() {}

  /**
   * Instant {@code timeoutMs} from now.
   *
   * @throws IllegalArgumentException for a negative time: every wait has a bound
   */
  static long afterMs(int timeoutMs) {
    if (timeoutMs < 0) {
      throw new IllegalArgumentException("a wait needs a bound: timeoutMs=" + timeoutMs);
    }
    return System.nanoTime() + timeoutMs * NS_PER_MS;
  }

  /** Milliseconds left, rounded up; 0 when past. */
  static int leftMs(long deadlineNs) {
    long leftNs = deadlineNs - System.nanoTime();
    return leftNs <= 0 ? 0 : Math.toIntExact((leftNs + NS_PER_MS - 1) / NS_PER_MS);
  }
}
