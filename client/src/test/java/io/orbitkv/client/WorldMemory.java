package io.orbitkv.client;

import java.lang.foreign.MemorySegment;

/** Fresh, zeroed memory of one world, handed out page by page. */
final class WorldMemory {
  /** Bytes that one world needs at most. */
  static final long BYTES = 192L << 20;

  private static final long PAGE_BYTES = 4096;

  private final MemorySegment memory;
  private long taken;

  WorldMemory(MemorySegment memory) {
    this.memory = memory;
  }

  MemorySegment take(long bytes) {
    MemorySegment next = memory.asSlice(taken, bytes);
    taken += (bytes + PAGE_BYTES - 1) & -PAGE_BYTES;
    return next;
  }
}
