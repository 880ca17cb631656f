package io.orbitkv.core;

import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.PlanEntry;

/** Space in the plan bank of one session, in units of 32 entries; a plan is contiguous. */
final class PlanBank {
  private static final int UNIT_ENTRIES = 32;
  private static final int UNIT_BYTES = UNIT_ENTRIES * PlanEntry.BYTES;
  private static final int UNITS = GrantTable.BANK_BYTES / UNIT_BYTES;

  private final long[] used = new long[UNITS / 64];
  private int hint;

  /** Units that a plan takes. */
  static int units(int entries) {
    return (entries + UNIT_ENTRIES - 1) / UNIT_ENTRIES;
  }

  /** Takes space for a plan and returns its offset in bytes; -1 when no gap is wide enough now. */
  int take(int entries) {
    int need = units(entries);
    int start = findGap(hint, need);
    if (start < 0 && hint > 0) {
      start = findGap(0, need);
    }
    if (start < 0) {
      return -1;
    }
    set(start, need, true);
    hint = (start + need) % UNITS;
    return start * UNIT_BYTES;
  }

  void free(int offset, int entries) {
    set(offset / UNIT_BYTES, units(entries), false);
  }

  /** Units in use. */
  int usedUnits() {
    int units = 0;
    for (long word : used) {
      units += Long.bitCount(word);
    }
    return units;
  }

  private int findGap(int from, int need) {
    int run = 0;
    for (int unit = from; unit < UNITS; unit++) {
      run = isUsed(unit) ? 0 : run + 1;
      if (run == need) {
        return unit - need + 1;
      }
    }
    return -1;
  }

  private boolean isUsed(int unit) {
    return (used[unit >> 6] & 1L << unit) != 0;
  }

  private void set(int start, int count, boolean value) {
    for (int unit = start; unit < start + count; unit++) {
      if (value == isUsed(unit)) {
        throw new IllegalStateException(
            "plan bank: unit=" + unit + " is already " + (value ? "used" : "free"));
      }
      used[unit >> 6] ^= 1L << unit;
    }
  }
}
