package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;

/**
 * Writes to random places of a large table, each of which costs a cache miss. They are kept back
 * and made in one go, which lets the misses overlap. Whoever reads the table flushes first.
 */
final class ScatteredWrites {
  private static final int KEPT_BACK = 64;

  private final MemorySegment table;
  private final long[] offsets = new long[KEPT_BACK];
  private final long[] values = new long[KEPT_BACK];
  private int kept;

  ScatteredWrites(MemorySegment table) {
    this.table = table;
  }

  /** Writes eight bytes, now or with the next flush. */
  void put(long offset, long value) {
    offsets[kept] = offset;
    values[kept] = value;
    kept++;
    if (kept == KEPT_BACK) {
      flush();
    }
  }

  /** Makes all writes that were kept back, in their order. */
  void flush() {
    for (int i = 0; i < kept; i++) {
      Memory.putLong(table, offsets[i], values[i]);
    }
    kept = 0;
  }
}
