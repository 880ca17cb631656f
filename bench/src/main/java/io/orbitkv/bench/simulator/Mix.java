package io.orbitkv.bench.simulator;

/**
 * Random numbers that are the same on every machine: SplitMix64 of Steele, Lea and Flood, "Fast
 * Splittable Pseudorandom Number Generators", OOPSLA 2014.
 */
final class Mix {
  private static final long GOLDEN_GAMMA = 0x9e37_79b9_7f4a_7c15L;

  private Mix() {}

  /** The number at a place of a sequence. */
  static long at(long sequence, long place) {
    return mix(mix(sequence) + place * GOLDEN_GAMMA);
  }

  /** Spreads every bit over all. */
  static long mix(long value) {
    long z = (value ^ value >>> 30) * 0xbf58_476d_1ce4_e5b9L;
    z = (z ^ z >>> 27) * 0x94d0_49bb_1331_11ebL;
    return z ^ z >>> 31;
  }
}
