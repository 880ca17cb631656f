package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Least recently used first, one list a size class, with each block before its parent: what a user
 * touches he touches from the tail of a chain to its head, and a new block takes its place just
 * before its parent. So the tail goes before the head, what is left of a chain is a prefix, and a
 * prefix can be restored.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  older      row next to go, plus one
 *      4      4  newer      row that goes after this one, plus one
 *      8      4  parent     row before this one in its chain, plus one
 *     12      4  parentTag  from the parent's allocation id: tells whether the row is still the parent
 *     16      4  stamp      time of the latest use, in operations
 * </pre>
 */
final class ChainLru implements EvictionPolicy {
  static final int ROW_BYTES = 20;

  /** Most pinned rows that one search for a victim passes. */
  private static final int MAX_SEARCH = 65_536;

  private static final long OLDER = 0;
  private static final long NEWER = 4;
  private static final long PARENT = 8;
  private static final long PARENT_TAG = 12;
  private static final long STAMP = 16;

  private final MemorySegment rows;
  private final BlockIndex index;
  private int[] oldest = new int[4];
  private int[] newest = new int[4];
  private int[] size = new int[4];

  ChainLru(long maxRows, MetadataMemory memory, BlockIndex index) {
    this.rows = memory.allocate(maxRows * ROW_BYTES);
    this.index = index;
  }

  private static long at(int row) {
    return (long) row * ROW_BYTES;
  }

  @Override
  public void added(int row, int sizeClass, int parent, int stamp) {
    while (sizeClass >= oldest.length) {
      oldest = Arrays.copyOf(oldest, 2 * oldest.length);
      newest = Arrays.copyOf(newest, 2 * newest.length);
      size = Arrays.copyOf(size, 2 * size.length);
    }
    long at = at(row);
    Memory.putInt(rows, at + PARENT, parent + 1);
    Memory.putInt(rows, at + PARENT_TAG, parent < 0 ? 0 : tag(parent));
    if (parent < 0) {
      append(row, sizeClass, stamp);
    } else {
      insertOlder(row, parent, sizeClass);
    }
    size[sizeClass]++;
  }

  /** Tells a row from a later one with the same number. */
  private int tag(int row) {
    return (int) index.allocation(row) + index.slab(row) * 0x9e37_79b9;
  }

  private void append(int row, int sizeClass, int stamp) {
    link(row, newest[sizeClass], 0, sizeClass);
    Memory.putInt(rows, at(row) + STAMP, stamp);
  }

  /** Puts a row just before its parent, so that it goes first and is as old. */
  private void insertOlder(int row, int parent, int sizeClass) {
    link(row, Memory.getInt(rows, at(parent) + OLDER), parent + 1, sizeClass);
    Memory.putInt(rows, at(row) + STAMP, stamp(parent));
  }

  /** Links a row between two neighbours, each a row plus one, or 0 for an end of the list. */
  private void link(int row, int older, int newer, int sizeClass) {
    Memory.putInt(rows, at(row) + OLDER, older);
    Memory.putInt(rows, at(row) + NEWER, newer);
    if (older == 0) {
      oldest[sizeClass] = row + 1;
    } else {
      Memory.putInt(rows, at(older - 1) + NEWER, row + 1);
    }
    if (newer == 0) {
      newest[sizeClass] = row + 1;
    } else {
      Memory.putInt(rows, at(newer - 1) + OLDER, row + 1);
    }
  }

  private void unlink(int row, int sizeClass) {
    int older = Memory.getInt(rows, at(row) + OLDER);
    int newer = Memory.getInt(rows, at(row) + NEWER);
    if (older == 0) {
      oldest[sizeClass] = newer;
    } else {
      Memory.putInt(rows, at(older - 1) + NEWER, newer);
    }
    if (newer == 0) {
      newest[sizeClass] = older;
    } else {
      Memory.putInt(rows, at(newer - 1) + OLDER, older);
    }
  }

  @Override
  public void touched(int row, int sizeClass, int stamp) {
    unlink(row, sizeClass);
    append(row, sizeClass, stamp);
  }

  @Override
  public void removed(int row, int sizeClass) {
    unlink(row, sizeClass);
    size[sizeClass]--;
  }

  /** Pinned rows that stand in the way are in use, so they move to the newest end. */
  @Override
  public int victim(int sizeClass) {
    if (sizeClass >= oldest.length) {
      return -1;
    }
    for (int i = Math.min(size[sizeClass], MAX_SEARCH); i > 0; i--) {
      int row = oldest[sizeClass] - 1;
      if (index.pins(row) == 0) {
        return row;
      }
      touched(row, sizeClass, stamp(row));
    }
    return -1;
  }

  @Override
  public int stamp(int row) {
    return Memory.getInt(rows, at(row) + STAMP);
  }

  @Override
  public int parent(int row) {
    int parent = Memory.getInt(rows, at(row) + PARENT) - 1;
    boolean same =
        parent >= 0
            && index.state(parent) == BlockIndex.RESIDENT
            && tag(parent) == Memory.getInt(rows, at(row) + PARENT_TAG);
    return same ? parent : -1;
  }

  @Override
  public long usedBytes() {
    return (long) index.highWater() * ROW_BYTES;
  }
}
