package io.orbitkv.manager;

import java.util.concurrent.atomic.AtomicLong;

/** Lets one log line through a second and counts the others. Thread-safe. */
final class LogLimiter {
  private static final long INTERVAL_NS = 1_000_000_000L;

  private final AtomicLong nextNs = new AtomicLong(System.nanoTime());
  private final AtomicLong dropped = new AtomicLong();

  /** Lines dropped since the last one that went through; -1 when this one is to be dropped. */
  long tryPass() {
    long now = System.nanoTime();
    long next = nextNs.get();
    if (now - next >= 0 && nextNs.compareAndSet(next, now + INTERVAL_NS)) {
      return dropped.getAndSet(0);
    }
    dropped.incrementAndGet();
    return -1;
  }
}
