package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;

/**
 * Rows of {@link ReusePolicy}.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  older      of a listed row: the one before it in its list, plus one
 *                children   of another row: rows that continue it
 *      4      4  newer      of a listed row: the one after it, plus one
 *      8      4  parent     row before this one in its chain, plus one
 *     12      2  state      {@link ReuseState}
 *     14      2  parentTag  from the parent's allocation id: tells whether the row is still the parent
 *     16      4  stamp      time of the latest use, in publishes
 * </pre>
 */
final class ReuseRows {
  static final int ROW_BYTES = 20;

  private static final long OLDER = 0;
  private static final long NEWER = 4;
  private static final long PARENT = 8;
  private static final long STATE = 12;
  private static final long STAMP = 16;
  private static final int STATE_MASK = 0xffff;

  private final MemorySegment rows;

  ReuseRows(long maxRows, MetadataMemory memory) {
    this.rows = memory.allocate(maxRows * ROW_BYTES);
  }

  private static long at(int row) {
    return (long) row * ROW_BYTES;
  }

  int older(int row) {
    return Memory.getInt(rows, at(row) + OLDER) - 1;
  }

  void setOlder(int row, int older) {
    Memory.putInt(rows, at(row) + OLDER, older + 1);
  }

  int newer(int row) {
    return Memory.getInt(rows, at(row) + NEWER) - 1;
  }

  void setNewer(int row, int newer) {
    Memory.putInt(rows, at(row) + NEWER, newer + 1);
  }

  /** Rows that continue one that is not listed. */
  int children(int row) {
    return Memory.getInt(rows, at(row) + OLDER);
  }

  void setChildren(int row, int children) {
    Memory.putInt(rows, at(row) + OLDER, children);
  }

  int parent(int row) {
    return Memory.getInt(rows, at(row) + PARENT) - 1;
  }

  int parentTag(int row) {
    return Memory.getInt(rows, at(row) + STATE) >>> 16;
  }

  /** Fills a row that becomes resident. */
  void fill(int row, int parent, int parentTag, int state, int stamp) {
    long at = at(row);
    Memory.putInt(rows, at + PARENT, parent + 1);
    Memory.putInt(rows, at + STATE, (parentTag << 16) | state);
    Memory.putInt(rows, at + STAMP, stamp);
  }

  int state(int row) {
    return Memory.getInt(rows, at(row) + STATE) & STATE_MASK;
  }

  void setState(int row, int state) {
    long at = at(row) + STATE;
    Memory.putInt(rows, at, (Memory.getInt(rows, at) & ~STATE_MASK) | state);
  }

  boolean isListed(int row) {
    return (state(row) & ReuseState.LISTED) != 0;
  }

  int stamp(int row) {
    return Memory.getInt(rows, at(row) + STAMP);
  }

  void setStamp(int row, int stamp) {
    Memory.putInt(rows, at(row) + STAMP, stamp);
  }
}
