package io.orbitkv.core;

import java.util.Arrays;

/**
 * Learns how likely blocks of each class are used again at each age, and from that what a place in
 * the cache is worth to them: the most uses that keeping the block on can bring for the time that
 * it takes, over all times to give up. That is the index of J. C. Gittins, "Bandit Processes and
 * Dynamic Allocation Indices", J. R. Stat. Soc. B 41(2), 1979, and the idea of <a
 * href="https://www.usenix.org/conference/nsdi18/presentation/beckmann">LHD</a>, here with the
 * rates estimated per class. Ages are counted in publishes and kept in half octaves.
 *
 * <p>A rate is reuses over time at risk. Where little was seen it leans on the rate of all classes
 * at that age times how much more this class is reused than all at any age (proportional hazards),
 * and that on a rate that falls with age and is scaled to all that was seen.
 */
final class ReuseStatistics {
  /** Number of age steps. */
  static final int STEPS = 44;

  private static final int STEPS_PER_OCTAVE = 2;
  private static final double HALF_LIFE = 131_072; // blocks stored
  private static final double BASE_WEIGHT = 1; // reuses that an assumed rate counts for
  private static final double CLASS_WEIGHT = 5;
  private static final double FACTOR_WEIGHT = 10;
  private static final double ASSUMED_CHANCE = 0.1; // rate at age a before all data: 0.1 / (a + 20)
  private static final double ASSUMED_AGE = 20;
  private static final double ASSUMED_WEIGHT = 2;
  private static final double TAIL_FACTOR = 0.1;
  private static final double FACTOR_OF_USES = 0.5;
  private static final double NEGLIGIBLE = 1e-3;
  private static final int BLOCKS_A_CLASS = 64;

  private static final double[] START = new double[STEPS + 1];

  static {
    for (int step = 0; step <= STEPS; step++) {
      double octave = 1L << (step / STEPS_PER_OCTAVE);
      START[step] = octave * (1 + (double) (step % STEPS_PER_OCTAVE) / STEPS_PER_OCTAVE);
    }
  }

  private final double[] reuses = new double[ReuseState.CLASSES * STEPS];
  private final double[] time = new double[ReuseState.CLASSES * STEPS];
  private final float[] worth = new float[ReuseState.CLASSES * STEPS];
  private final double[] allReuses = new double[STEPS];
  private final double[] allTime = new double[STEPS];
  private final double[] base = new double[STEPS];
  private final double[] stays = new double[STEPS];
  private final double[] held = new double[STEPS];
  private int blocks;

  ReuseStatistics() {
    updateBase();
    for (int c = 0; c < ReuseState.CLASSES; c++) {
      updateWorth(c);
    }
  }

  /** Step of an age in publishes. */
  static int step(int age) {
    int a = Math.max(1, age);
    int octave = 31 - Integer.numberOfLeadingZeros(a);
    int half = octave == 0 ? 0 : (a >>> (octave - 1)) & 1;
    return Math.min(STEPS - 1, STEPS_PER_OCTAVE * octave + half);
  }

  /** What a place is worth to a block of the class and age: uses a publish. */
  float worth(int reuseClass, int step) {
    return worth[reuseClass * STEPS + step];
  }

  /** A block was not used while it aged from {@code from} (exclusive) to {@code to}. */
  void aged(int reuseClass, int from, int to) {
    int at = reuseClass * STEPS;
    for (int age = from + 1; age <= to; ) {
      int step = step(age);
      int last = step == STEPS - 1 ? to : Math.min(to, (int) Math.ceil(START[step + 1]) - 1);
      time[at + step] += last - age + 1;
      age = last + 1;
    }
  }

  /** A block was used again at this age. */
  void reused(int reuseClass, int age) {
    reuses[reuseClass * STEPS + step(age)]++;
  }

  /** A block is stored. Every few of them one class is brought up to date. */
  void step() {
    blocks++;
    if (blocks % BLOCKS_A_CLASS == 0) {
      int turn = blocks / BLOCKS_A_CLASS % ReuseState.CLASSES;
      if (turn == 0) {
        updateBase();
      }
      fade(turn);
      updateWorth(turn);
    }
  }

  private void fade(int reuseClass) {
    double factor = Math.pow(0.5, BLOCKS_A_CLASS * ReuseState.CLASSES / HALF_LIFE);
    for (int i = reuseClass * STEPS; i < (reuseClass + 1) * STEPS; i++) {
      reuses[i] *= factor;
      time[i] *= factor;
    }
  }

  private void updateBase() {
    Arrays.fill(allReuses, 0);
    Arrays.fill(allTime, 0);
    for (int i = 0; i < ReuseState.CLASSES * STEPS; i++) {
      allReuses[i % STEPS] += reuses[i];
      allTime[i % STEPS] += time[i];
    }
    double seen = ASSUMED_WEIGHT;
    double expected = ASSUMED_WEIGHT;
    for (int step = 0; step < STEPS; step++) {
      seen += allReuses[step];
      expected += allTime[step] * assumed(step);
    }
    for (int step = 0; step < STEPS; step++) {
      double assumed = assumed(step) * seen / expected;
      base[step] = (allReuses[step] + BASE_WEIGHT) / (allTime[step] + BASE_WEIGHT / assumed);
    }
  }

  private static double assumed(int step) {
    return ASSUMED_CHANCE / (START[step] + ASSUMED_AGE);
  }

  private void updateWorth(int reuseClass) {
    int at = reuseClass * STEPS;
    double factor = factor(reuseClass);
    for (int step = 0; step < STEPS; step++) {
      double weight = BASE_WEIGHT * CLASS_WEIGHT;
      double expected = base[step] * factor;
      double rate = (reuses[at + step] + weight) / (time[at + step] + weight / expected);
      double length = START[step + 1] - START[step];
      double risk = rate * length;
      stays[step] = 1 / (1 + risk);
      held[step] = stays[step] * length * (1 + risk / 2);
    }
    for (int step = 0; step < STEPS; step++) {
      worth[at + step] = (float) index(step);
    }
  }

  /** How much more the class is reused than all classes at the same ages. */
  private double factor(int reuseClass) {
    int at = reuseClass * STEPS;
    double seen = 0;
    double expected = 0;
    for (int step = 0; step < STEPS; step++) {
      seen += reuses[at + step];
      expected += time[at + step] * base[step];
    }
    int uses = ReuseState.typicalUses(reuseClass);
    double assumed = uses == 0 ? TAIL_FACTOR : FACTOR_OF_USES * uses * uses;
    return (seen + FACTOR_WEIGHT * assumed) / (expected + FACTOR_WEIGHT);
  }

  /** Gittins index at the start of an age step, for the chances in {@link #stays}. */
  private double index(int from) {
    double alive = 1;
    double sumUsed = 0;
    double sumHeld = 0;
    double bestUsed = 0;
    double bestHeld = 1;
    for (int step = from; step < STEPS - 1 && alive > NEGLIGIBLE; step++) {
      sumUsed += alive * (1 - stays[step]);
      sumHeld += alive * held[step];
      alive *= stays[step];
      if (sumUsed * bestHeld > bestUsed * sumHeld) {
        bestUsed = sumUsed;
        bestHeld = sumHeld;
      }
    }
    return bestUsed / bestHeld;
  }
}
