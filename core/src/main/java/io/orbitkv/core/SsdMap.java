package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;

/**
 * Blocks that are on SSD, off the object heap: 56 bytes a row and 8 for buckets at the table's load
 * of one half, 64 in all. A row that is taken out of the table stays until its segment is emptied.
 *
 * <pre>
 * offset  bytes  field
 *      0     32  hash     zero padded
 *     32      4  space    id; −1 for a row that no lookup may find any more
 *     36      4  next     next row of the bucket, plus one; of a free row the next free one
 *     40      4  crc32c
 *     44      4  place    segment in the upper half, page in the lower
 *     48      4  sibling  next row of the segment, plus one
 *     52      4  load     load in progress, plus one
 * </pre>
 *
 * The table grows by linear hashing as that of {@link BlockIndex}.
 */
final class SsdMap {
  static final int ROW_BYTES = 56;

  private static final long SPACE = 32;
  private static final long NEXT = 36;
  private static final long CRC = 40;
  private static final long PLACE = 44;
  private static final long SIBLING = 48;
  private static final long LOAD = 52;
  private static final int FIRST_BUCKETS = 1024;
  private static final int HASH_BYTES = 32;

  private final MemorySegment rows;
  private final MemorySegment buckets;
  private final int maxRows;
  private int highWater;
  private int firstFree;
  private int live;
  private long half = FIRST_BUCKETS;
  private long split;

  SsdMap(int maxRows, MetadataMemory memory) {
    this.maxRows = maxRows;
    this.rows = memory.allocate((long) maxRows * ROW_BYTES);
    this.buckets = memory.allocate(Integer.BYTES * Math.max(2L * maxRows + 2, FIRST_BUCKETS * 2L));
  }

  private static long at(int row) {
    return (long) row * ROW_BYTES;
  }

  /** Takes a free row; −1 when every row is in use. */
  int takeRow() {
    if (firstFree != 0) {
      int row = firstFree - 1;
      firstFree = Memory.getInt(rows, at(row) + NEXT);
      return row;
    }
    return highWater < maxRows ? highWater++ : -1;
  }

  /** Gives back a row that is not in the table. */
  void freeRow(int row) {
    Memory.putInt(rows, at(row) + SPACE, -1);
    Memory.putInt(rows, at(row) + NEXT, firstFree);
    firstFree = row + 1;
  }

  /** Fills a taken row; it is not in the table yet. */
  void fill(int row, int space, MemorySegment hashes, long hash, int crc, int segment, int page) {
    long at = at(row);
    for (int word = 0; word < HASH_BYTES; word += Long.BYTES) {
      Memory.putLong(rows, at + word, Memory.getLong(hashes, hash + word));
    }
    Memory.putInt(rows, at + SPACE, space);
    Memory.putInt(rows, at + NEXT, 0);
    Memory.putInt(rows, at + CRC, crc);
    Memory.putInt(rows, at + PLACE, segment << 16 | page);
    Memory.putInt(rows, at + SIBLING, 0);
    Memory.putInt(rows, at + LOAD, 0);
  }

  private long bucketOf(long mix) {
    long bucket = mix & (2 * half - 1);
    return (bucket >= half + split ? bucket - half : bucket) * Integer.BYTES;
  }

  private long bucketOfRow(int row) {
    return bucketOf(BlockIndex.mix(rows, at(row), HASH_BYTES, space(row)));
  }

  /** Finds a row in the table; −1 when there is none. */
  int find(int space, MemorySegment data, long hash, int hashBytes) {
    if (live == 0) {
      return -1;
    }
    int next = Memory.getInt(buckets, bucketOf(BlockIndex.mix(data, hash, hashBytes, space)));
    while (next != 0) {
      if (matches(next - 1, space, data, hash, hashBytes)) {
        return next - 1;
      }
      next = Memory.getInt(rows, at(next - 1) + NEXT);
    }
    return -1;
  }

  private boolean matches(int row, int space, MemorySegment data, long hash, int hashBytes) {
    long at = at(row);
    for (int word = 0; word < 4; word++) {
      if (Memory.getLong(rows, at + 8L * word)
          != BlockIndex.hashWord(data, hash, hashBytes, word)) {
        return false;
      }
    }
    return Memory.getInt(rows, at + SPACE) == space;
  }

  /** Puts a filled row into the table; a later row of the same key is found before it. */
  void insert(int row) {
    long bucket = bucketOfRow(row);
    Memory.putInt(rows, at(row) + NEXT, Memory.getInt(buckets, bucket));
    Memory.putInt(buckets, bucket, row + 1);
    live++;
    while (half + split < 2L * live) {
      splitBucket();
    }
  }

  /** Counts a filled row that {@link #build} puts into the table. */
  void insertAtBuild() {
    live++;
  }

  /**
   * Makes the table of all rows at once, in one pass over the rows in their order; for a map that
   * was filled by {@link #insertAtBuild} alone.
   */
  void build() {
    if (2L * live > FIRST_BUCKETS) {
      half = Long.highestOneBit(2L * live);
      split = 2L * live - half;
    }
    for (int row = 0; row < highWater; row++) {
      if (space(row) >= 0) {
        long bucket = bucketOfRow(row);
        Memory.putInt(rows, at(row) + NEXT, Memory.getInt(buckets, bucket));
        Memory.putInt(buckets, bucket, row + 1);
      }
    }
  }

  private void splitBucket() {
    long low = split * Integer.BYTES;
    long high = (split + half) * Integer.BYTES;
    int next = Memory.getInt(buckets, low);
    Memory.putInt(buckets, low, 0);
    Memory.putInt(buckets, high, 0);
    split++;
    if (split == half) {
      half *= 2;
      split = 0;
    }
    while (next != 0) {
      int row = next - 1;
      next = Memory.getInt(rows, at(row) + NEXT);
      long bucket = bucketOfRow(row);
      Memory.putInt(rows, at(row) + NEXT, Memory.getInt(buckets, bucket));
      Memory.putInt(buckets, bucket, row + 1);
    }
  }

  /** Takes a row out of the table; no lookup finds it any more. */
  void remove(int row) {
    long bucket = bucketOfRow(row);
    int wanted = row + 1;
    int next = Memory.getInt(buckets, bucket);
    if (next == wanted) {
      Memory.putInt(buckets, bucket, Memory.getInt(rows, at(row) + NEXT));
    } else {
      int before = next;
      while (before != 0 && Memory.getInt(rows, at(before - 1) + NEXT) != wanted) {
        before = Memory.getInt(rows, at(before - 1) + NEXT);
      }
      if (before == 0) {
        throw new IllegalStateException("SSD row is not in its bucket: row=" + row);
      }
      Memory.putInt(rows, at(before - 1) + NEXT, Memory.getInt(rows, at(row) + NEXT));
    }
    Memory.putInt(rows, at(row) + SPACE, -1);
    live--;
  }

  /** Memory in which {@link #hashAt} finds the hash of a row. */
  MemorySegment hashes() {
    return rows;
  }

  static long hashAt(int row) {
    return at(row);
  }

  long digest(int row) {
    return BlockIndex.digest(rows, at(row), HASH_BYTES);
  }

  /** Id of the row's space; −1 for a row that was taken out of the table. */
  int space(int row) {
    return Memory.getInt(rows, at(row) + SPACE);
  }

  int crc(int row) {
    return Memory.getInt(rows, at(row) + CRC);
  }

  int segment(int row) {
    return Memory.getInt(rows, at(row) + PLACE) >>> 16;
  }

  int page(int row) {
    return Memory.getInt(rows, at(row) + PLACE) & 0xffff;
  }

  /** Next row of a list of rows, plus one; 0 at its end. */
  int sibling(int row) {
    return Memory.getInt(rows, at(row) + SIBLING);
  }

  void setSibling(int row, int next) {
    Memory.putInt(rows, at(row) + SIBLING, next);
  }

  /** Load in progress, plus one; 0 for none. */
  int load(int row) {
    return Memory.getInt(rows, at(row) + LOAD);
  }

  void setLoad(int row, int load) {
    Memory.putInt(rows, at(row) + LOAD, load);
  }

  /** Rows that lookups find. */
  int live() {
    return live;
  }

  /** Most rows that were ever in use at once. */
  int highWater() {
    return highWater;
  }

  /** Bytes of rows and buckets that were ever used. */
  long usedBytes() {
    return (long) highWater * ROW_BYTES + (half + split) * Integer.BYTES;
  }
}
