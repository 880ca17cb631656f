package io.orbitkv.client;

/** Doubling waits between attempts. Belongs to one thread. */
final class BackOff {
  private final long firstNs;
  private final long longestNs;
  private long nextNs;

  BackOff(long firstNs, long longestNs) {
    this.firstNs = firstNs;
    this.longestNs = longestNs;
    this.nextNs = firstNs;
  }

  /** Nanoseconds to wait before the next attempt. */
  long next() {
    long wait = nextNs;
    nextNs = Math.min(longestNs, 2 * nextNs);
    return wait;
  }

  /** An attempt has succeeded. */
  void reset() {
    nextNs = firstNs;
  }
}
