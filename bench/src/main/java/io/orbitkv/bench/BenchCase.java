package io.orbitkv.bench;

import java.util.Locale;

/**
 * One measured figure beside its reference.
 *
 * @param name what was measured
 * @param unit unit of both figures
 * @param ours our figure, median of the rounds
 * @param reference the reference's figure, median of the rounds; null when there is none
 * @param referenceName what the reference is, or why there is none
 * @param better which way is better
 * @param rounds number of rounds
 */
public record BenchCase(
    String name,
    String unit,
    double ours,
    Double reference,
    String referenceName,
    Better better,
    int rounds) {
  /** Which way a figure is better. */
  public enum Better {
    /** Times and counts. */
    LOWER,
    /** Rates. */
    HIGHER;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** Ours over the reference; null without a reference. */
  public Double ratio() {
    return reference == null || reference == 0 ? null : Double.valueOf(ours / reference);
  }
}
