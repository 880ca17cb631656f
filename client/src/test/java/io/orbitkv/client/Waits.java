package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits of tests that fail after a bound. */
final class Waits {
  /** The bound of each. */
  static final Duration BOUND = Duration.ofSeconds(20);

  private static final long LOOK_NS = 1_000_000;

  private Waits() {}

  static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(BOUND.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  static void await(String what, BooleanSupplier condition) {
    long began = System.nanoTime();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - began).as("wait for %s", what).isLessThan(BOUND.toNanos());
      LockSupport.parkNanos(LOOK_NS);
    }
  }
}
