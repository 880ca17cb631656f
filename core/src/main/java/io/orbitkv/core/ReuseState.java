package io.orbitkv.core;

/**
 * What is known of a block's past, in 16 bits, and the class of blocks that it puts the block in.
 *
 * <pre>
 * bits   field
 *  0-5   uses     times it was published or restored, at most 63
 *  6-8   run      length of the new part of the chain that it came with, as a power of two
 *  9-10  gap      time between its two latest uses: short, middle, long
 *   11   tail     last block of its publish, and not used since
 *   12   listed   nothing in the cache continues it, so it may go
 *   13   sampled  its uses are watched by {@link ReuseSamples}
 * </pre>
 */
final class ReuseState {
  /** Number of classes. */
  static final int CLASSES = 30;

  static final int TAIL = 1 << 11;
  static final int LISTED = 1 << 12;
  static final int SAMPLED = 1 << 13;

  /** Bits that are of the block's past and not of its place in the cache. */
  static final int PAST = (1 << 12) - 1;

  private static final int MAX_USES = 63;
  private static final int RUN_SHIFT = 6;
  private static final int GAP_SHIFT = 9;
  private static final int RUNS = 8;
  private static final int GAPS = 3;
  private static final int LEVELS = 8;
  private static final int MIDDLE_GAP_BITS = 5;
  private static final int LONG_GAP_BITS = 8;

  private ReuseState() {}

  /** State of a block never seen, with so many blocks of its publish from it on. */
  static int fresh(int left, int runAtLeast) {
    int run = Math.max(runAtLeast, Math.min(RUNS - 1, bits(left)));
    return 1 | (run << RUN_SHIFT) | (left == 1 ? TAIL : 0);
  }

  /** State after a use that came so long after the one before. */
  static int used(int state, int gap) {
    int uses = Math.min(MAX_USES, uses(state) + 1);
    int run = state & ((RUNS - 1) << RUN_SHIFT);
    return uses | run | (gapOf(gap) << GAP_SHIFT) | (state & (LISTED | SAMPLED));
  }

  private static int gapOf(int gap) {
    int bits = bits(gap);
    return bits >= LONG_GAP_BITS ? 2 : bits >= MIDDLE_GAP_BITS ? 1 : 0;
  }

  private static int bits(int value) {
    return Integer.SIZE - Integer.numberOfLeadingZeros(value);
  }

  static int uses(int state) {
    return state & MAX_USES;
  }

  static int run(int state) {
    return (state >>> RUN_SHIFT) & (RUNS - 1);
  }

  /** Class of a block: 0 for tails, then by run for blocks used once, then by uses and gap. */
  static int classOf(int state) {
    if ((state & TAIL) != 0) {
      return 0;
    }
    int uses = uses(state);
    if (uses <= 1) {
      return 1 + run(state);
    }
    return 1 + RUNS + (level(uses) - 2) * GAPS + ((state >>> GAP_SHIFT) & 3);
  }

  /** Uses in steps that grow. */
  private static int level(int uses) {
    if (uses <= 4) {
      return uses;
    }
    return uses <= 6 ? 5 : uses <= 9 ? 6 : uses <= 14 ? 7 : LEVELS;
  }

  /** Uses that a block of the class has had, about; 0 for tails. */
  static int typicalUses(int reuseClass) {
    if (reuseClass <= RUNS) {
      return Math.min(reuseClass, 1);
    }
    int level = 2 + (reuseClass - 1 - RUNS) / GAPS;
    return switch (level) {
      case 2, 3, 4, 5 -> level;
      case 6 -> 8;
      case 7 -> 12;
      default -> 18;
    };
  }
}
