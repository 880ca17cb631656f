package io.orbitkv.core;

/**
 * Recycled int arrays, by powers of two, so that lists of rows cost no garbage in steady state. A
 * taken array is at least as long as asked and its content is undefined.
 */
final class IntArrays {
  private static final int MIN_SHIFT = 3;
  private static final int KEPT_INTS_A_SIZE = 1 << 20;
  private static final int KEPT_ARRAYS_A_SIZE = 1024;

  private final int[][][] free = new int[32][][];
  private final int[] count = new int[32];

  int[] take(int length) {
    int shift = shift(length);
    return count[shift] == 0 ? new int[1 << shift] : free[shift][--count[shift]];
  }

  void give(int[] array) {
    int shift = shift(array.length);
    if (free[shift] == null) {
      free[shift] = new int[Math.clamp(KEPT_INTS_A_SIZE >> shift, 1, KEPT_ARRAYS_A_SIZE)][];
    }
    if (count[shift] < free[shift].length) { // the others are garbage: memory kept is bounded
      free[shift][count[shift]++] = array;
    }
  }

  private static int shift(int length) {
    return Math.max(MIN_SHIFT, 32 - Integer.numberOfLeadingZeros(Math.max(1, length) - 1));
  }
}
