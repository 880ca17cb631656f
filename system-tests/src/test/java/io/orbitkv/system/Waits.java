package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.testsupport.TestEngine;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** Waits for what no status tells. */
final class Waits {
  private static final long BOUND_NS = TimeUnit.SECONDS.toNanos(30);
  private static final long LOOK_NS = 5_000_000;

  private Waits() {}

  /** Looks until there is what is wanted, within a bound; returns what there was last. */
  static <T> T until(Supplier<T> look, Predicate<T> wanted) {
    long deadline = System.nanoTime() + BOUND_NS;
    T seen = look.get();
    while (!wanted.test(seen) && System.nanoTime() < deadline) {
      LockSupport.parkNanos(LOOK_NS);
      seen = look.get();
    }
    return seen;
  }

  /** Waits until an engine that churns has restored once more, whole and right. */
  static void awaitHit(TestEngine engine) {
    String before = engine.ask("hits");
    assertThat(until(() -> engine.ask("hits"), hits -> !hits.equals(before)))
        .as("one more hit")
        .isNotEqualTo(before);
  }
}
