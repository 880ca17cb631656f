package io.orbitkv.manager;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Lets one log line through in a time and counts the others. Thread-safe. */
final class LogLimiter {
  private static final Duration USUAL = Duration.ofSeconds(1);

  private final long intervalNs;
  private final AtomicLong nextNs = new AtomicLong(System.nanoTime());
  private final AtomicLong dropped = new AtomicLong();

  /** Lets one line a second through. */
  LogLimiter() {
    this(USUAL);
  }

  /** Lets one line through in the time given. */
  LogLimiter(Duration interval) {
    intervalNs = interval.toNanos();
  }

  /** Lines dropped since the last one that went through; -1 when this one is to be dropped. */
  long tryPass() {
    long now = System.nanoTime();
    long next = nextNs.get();
    if (now - next >= 0 && nextNs.compareAndSet(next, now + intervalNs)) {
      return dropped.getAndSet(0);
    }
    dropped.incrementAndGet();
    return -1;
  }
}
