package io.orbitkv.bench;

/**
 * Which cases of a benchmark to measure, and for how long.
 *
 * @param only part of the names of the cases; empty for all
 * @param seconds time of each side of a case, over all rounds
 */
public record BenchScope(String only, int seconds) {
  /** Least time of a case that counts. */
  public static final int DEFAULT_SECONDS = 16;

  private static final double NS = 1e9;

  /** Everything, in full. */
  public static final BenchScope FULL = new BenchScope("", DEFAULT_SECONDS);

  boolean includes(String name) {
    return name.contains(only);
  }

  /** Time of one of so many rounds. */
  long roundNs(int rounds) {
    return (long) (seconds * NS / rounds);
  }
}
