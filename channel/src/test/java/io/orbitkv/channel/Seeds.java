package io.orbitkv.channel;

import java.util.SplittableRandom;

/** Randomness that can be replayed: {@code -Dorbitkv.seed=N} with the seed that a failure names. */
final class Seeds {
  private Seeds() {}

  /** A body that fails with its seed in the message. */
  static void run(SeededBody body) {
    long seed = Long.getLong("orbitkv.seed", System.nanoTime());
    try {
      body.run(new SplittableRandom(seed));
    } catch (RuntimeException | AssertionError e) {
      throw new AssertionError("failed with -Dorbitkv.seed=" + seed, e);
    }
  }

  /** What a seed drives. */
  interface SeededBody {
    void run(SplittableRandom random);
  }
}
