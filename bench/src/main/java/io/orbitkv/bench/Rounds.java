package io.orbitkv.bench;

import java.io.IOException;
import java.util.Arrays;

/**
 * Measures two things in turn, so that what disturbs the machine meets both: round after round, in
 * alternating order. Medians are over all rounds but the first, which warms up.
 *
 * @param ours median of ours
 * @param reference median of the reference; null without one
 * @param count number of rounds
 */
record Rounds(double ours, Double reference, int count) {
  /**
   * Measures.
   *
   * @param reference null for none
   */
  static Rounds run(int count, Measurement ours, Measurement reference) throws IOException {
    double[] mine = new double[count];
    double[] others = new double[count];
    for (int i = -1; i < count; i++) {
      boolean first = (i & 1) == 0;
      double other = first && reference != null ? reference.take() : 0;
      double own = ours.take();
      if (!first && reference != null) {
        other = reference.take();
      }
      if (i >= 0) {
        mine[i] = own;
        others[i] = other;
      }
    }
    return new Rounds(median(mine), reference == null ? null : median(others), count);
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
