package io.orbitkv.bench;

import java.io.IOException;
import java.util.Arrays;

/**
 * Measures two things in turn, so that what disturbs the machine meets both: round after round, in
 * alternating order. Both warm up for a second or more before the rounds that count, so that
 * compiled code is measured.
 *
 * @param ours median of ours
 * @param reference median of the reference; null without one
 * @param count number of rounds
 */
record Rounds(double ours, Double reference, int count) {
  private static final long WARM_UP_NS = 1_000_000_000;

  /**
   * Measures.
   *
   * @param reference null for none
   */
  static Rounds run(int count, Measurement ours, Measurement reference) throws IOException {
    return run(WARM_UP_NS, count, ours, reference);
  }

  static Rounds run(long warmUpNs, int count, Measurement ours, Measurement reference)
      throws IOException {
    warmUp(warmUpNs, ours, reference);
    double[] mine = new double[count];
    double[] others = new double[count];
    for (int i = 0; i < count; i++) {
      boolean first = (i & 1) == 0;
      if (first && reference != null) {
        others[i] = reference.take();
      }
      mine[i] = ours.take();
      if (!first && reference != null) {
        others[i] = reference.take();
      }
    }
    return new Rounds(median(mine), reference == null ? null : median(others), count);
  }

  private static void warmUp(long warmUpNs, Measurement ours, Measurement reference)
      throws IOException {
    long end = System.nanoTime() + warmUpNs;
    do {
      if (reference != null) {
        reference.take();
      }
      ours.take();
    } while (System.nanoTime() < end);
  }

  /** The case of these rounds. */
  BenchCase as(String name, String unit, BenchCase.Better better, String referenceName) {
    return new BenchCase(name, unit, ours, reference, referenceName, better, count);
  }

  static double median(double... values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
