package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Least recently used first, one list a size class. Users touch a chain from its tail to its head,
 * so that of equally old blocks the tail goes before the head: what is left of a chain is always a
 * prefix, and a prefix can be restored.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  older      row next to go, plus one
 *      4      4  newer      row that goes after this one, plus one
 *      8      4  parent     row before this one in its chain, plus one
 *     12      4  parentTag  low half of the parent's allocation id: tells whether the row is still the parent
 *     16      4  stamp      time of the latest use, in operations
 * </pre>
 */
final class ChainLru implements EvictionPolicy {
  static final int ROW_BYTES = 20;

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
    Memory.putInt(rows, at + PARENT_TAG, parent < 0 ? 0 : (int) index.allocation(parent));
    append(row, sizeClass, stamp);
    size[sizeClass]++;
  }

  private void append(int row, int sizeClass, int stamp) {
    long at = at(row);
    int before = newest[sizeClass];
    Memory.putInt(rows, at + OLDER, before);
    Memory.putInt(rows, at + NEWER, 0);
    Memory.putInt(rows, at + STAMP, stamp);
    if (before == 0) {
      oldest[sizeClass] = row + 1;
    } else {
      Memory.putInt(rows, at(before - 1) + NEWER, row + 1);
    }
    newest[sizeClass] = row + 1;
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
    for (int i = size[sizeClass]; i > 0; i--) {
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
            && (int) index.allocation(parent) == Memory.getInt(rows, at(row) + PARENT_TAG);
    return same ? parent : -1;
  }

  @Override
  public long usedBytes() {
    return (long) index.highWater() * ROW_BYTES;
  }
}
