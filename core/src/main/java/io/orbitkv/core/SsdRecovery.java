package io.orbitkv.core;

import java.lang.foreign.MemorySegment;

/** Takes in what the SSD files hold at the start, segment after segment in any order. */
public interface SsdRecovery {
  /** Segments from now on have this generation or a greater one. */
  void nextGeneration(long least);

  /**
   * A segment has a valid table.
   *
   * @param generation its generation
   * @param lifetimeBytes bytes ever written to the tier, as the table says
   */
  void segment(int segment, long generation, long lifetimeBytes);

  /**
   * Number of a group of the namespace whose digest of 32 bytes is at an offset of the memory.
   *
   * @return −1 when blocks of that size cannot be held here
   */
  int space(MemorySegment memory, long at, int group, int hashBytes, int blockBytes);

  /**
   * A block of the segment named last.
   *
   * @param space from {@link #space}
   * @param hash offset of its hash, 32 bytes with zeros behind it
   * @return false when there is no row left for it
   */
  boolean block(int space, MemorySegment memory, long hash, int page, int crc);

  /** Everything was named: from now on lookups find it. */
  void end();
}
