package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;

/**
 * Rows of blocks, and the hash table over those that are resident, all off the object heap. A row
 * costs 64 bytes here, 20 in {@link ReusePolicy}, 8 for buckets at the table's load of one half,
 * and 4 in its slab: 96 in all.
 *
 * <pre>
 * offset  bytes  field
 *      0     32  hash        zero padded
 *     32      4  space       id of (namespace, group)
 *     36      4  next        next row of the bucket, plus one; of a free row the next free one
 *     40      4  pins        holders: leases and operations
 *     44      4  crc32c
 *     48      8  allocation  allocation id
 *     56      4  slab
 *     60      4  slot        bits 0-23; bits 24-27 are the state, {@link #UNSEALED} or {@link
 *                            #RESIDENT}; bits 28-31 are marks of a resident row
 * </pre>
 *
 * The table grows by linear hashing, two buckets an insertion, so no step ever rehashes it whole.
 * Witold Litwin, "Linear Hashing: A New Tool for File and Table Addressing", VLDB 1980.
 */
final class BlockIndex {
  static final int ROW_BYTES = 64;

  /** State of a row that is free. */
  static final int FREE = 0;

  /** State of a row whose bytes are not written yet; no lookup finds it. */
  static final int UNSEALED = 1;

  /** State of a row that lookups find. */
  static final int RESIDENT = 2;

  /** Mark: the SSD tier has looked at the row and need not do so again. */
  static final int SSD_KNOWN = 1 << 28;

  /** Mark: the row was loaded, and is pinned until somebody leases it. */
  static final int HELD_LOAD = 1 << 29;

  private static final long SPACE = 32;
  private static final long NEXT = 36;
  private static final long PINS = 40;
  private static final long CRC = 44;
  private static final long ALLOCATION = 48;
  private static final long SLAB = 56;
  private static final long SLOT = 60;
  private static final int SLOT_MASK = 0xff_ffff;
  private static final int STATE_SHIFT = 24;
  private static final int STATE_MASK = 15;
  private static final int FIRST_BUCKETS = 1024;

  /** Rows after which the next ones are expected to follow each other again. */
  private static final int LONG_RUN = 16;

  private static final int SMALL_BATCH = 64;
  private static final int BATCH = 512;

  private final MemorySegment rows;
  private final MemorySegment buckets;
  private final int maxRows;
  private final int[] next = new int[BATCH];
  private final int[] places = new int[BATCH];
  private final long[] offsets = new long[BATCH];
  private final long[] words = new long[4 * BATCH]; // of each hash
  private int highWater;
  private int firstFree;
  private int resident;
  private long half = FIRST_BUCKETS;
  private long split;
  private long touched; // keeps loads alive whose values are not needed

  BlockIndex(long maxRows, MetadataMemory memory) {
    this.maxRows = Math.toIntExact(maxRows);
    this.rows = memory.allocate(maxRows * ROW_BYTES);
    this.buckets = memory.allocate(Integer.BYTES * Math.max(2 * maxRows + 2, FIRST_BUCKETS));
  }

  private static long at(int row) {
    return (long) row * ROW_BYTES;
  }

  /** Takes a free row; -1 when every row is in use. */
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
    long at = at(row);
    if (state(row) == FREE) {
      throw new IllegalStateException("row freed twice: row=" + row);
    }
    Memory.putInt(rows, at + SLOT, 0);
    Memory.putInt(rows, at + NEXT, firstFree);
    firstFree = row + 1;
  }

  /** Fills a taken row for a block whose bytes are still to be written. */
  void fill(
      int row,
      int space,
      MemorySegment data,
      long hash,
      int hashBytes,
      long allocation,
      int slab,
      int slot) {
    long at = at(row);
    for (int word = 0; word < 4; word++) {
      Memory.putLong(rows, at + 8L * word, hashWord(data, hash, hashBytes, word));
    }
    Memory.putInt(rows, at + SPACE, space);
    Memory.putInt(rows, at + NEXT, 0);
    Memory.putInt(rows, at + PINS, 0);
    Memory.putInt(rows, at + CRC, 0);
    Memory.putLong(rows, at + ALLOCATION, allocation);
    Memory.putInt(rows, at + SLAB, slab);
    Memory.putInt(rows, at + SLOT, slot | UNSEALED << STATE_SHIFT);
  }

  static long hashWord(MemorySegment data, long hash, int hashBytes, int word) {
    int left = hashBytes - 8 * word;
    return left >= 8 ? Memory.getLong(data, hash + 8L * word) : tail(data, hash, word, left);
  }

  /** The last bytes of a hash, zero padded; apart, so that what reads whole words stays small. */
  private static long tail(MemorySegment data, long hash, int word, int left) {
    long value = 0;
    for (int i = 0; i < left; i++) {
      value |= (Memory.getByte(data, hash + 8L * word + i) & 0xffL) << (8 * i);
    }
    return value;
  }

  /** Spreads the bits of a key; every bit of the hash and of the space matters. */
  private static long mix(long word0, long word1, long word2, long word3, int space) {
    long h = (word0 ^ space) * 0x9e37_79b9_7f4a_7c15L;
    h = (Long.rotateLeft(h, 31) ^ word1) * 0xc2b2_ae3d_27d4_eb4fL;
    h = (Long.rotateLeft(h, 29) ^ word2) * 0x1656_67b1_9e37_79f9L;
    h = (Long.rotateLeft(h, 27) ^ word3) * 0x27d4_eb2f_1656_67c5L;
    h ^= h >>> 32;
    h *= 0x9e37_79b9_7f4a_7c15L;
    return h ^ h >>> 29;
  }

  /** Spreads the bits of a key that is not in a row. */
  static long mix(MemorySegment data, long hash, int hashBytes, int space) {
    return mix(
        hashWord(data, hash, hashBytes, 0),
        hashWord(data, hash, hashBytes, 1),
        hashWord(data, hash, hashBytes, 2),
        hashWord(data, hash, hashBytes, 3),
        space);
  }

  /** Digest of a hash alone, whatever its namespace. */
  static long digest(MemorySegment data, long hash, int hashBytes) {
    return mix(data, hash, hashBytes, 0);
  }

  /** Digest of a row's hash alone, whatever its namespace. */
  long digest(int row) {
    return mixOfRow(row, 0);
  }

  /** Digest of a row's hash and space. */
  long key(int row) {
    return mixOfRow(row, space(row));
  }

  private long mixOfRow(int row, int space) {
    long at = at(row);
    return mix(
        Memory.getLong(rows, at),
        Memory.getLong(rows, at + 8),
        Memory.getLong(rows, at + 16),
        Memory.getLong(rows, at + 24),
        space);
  }

  private long bucketOf(long mix) {
    long bucket = mix & (2 * half - 1);
    return (bucket >= half + split ? bucket - half : bucket) * Integer.BYTES;
  }

  /**
   * Finds the resident rows of {@code count} hashes that lie {@code hashBytes} apart.
   *
   * @param out row of each hash, -1 when it is not resident
   * @param prefix true to stop at the first one that is missing
   * @return number of entries of {@code out} that were filled, the missing one at a stop not among
   *     them
   */
  int find(
      int space,
      MemorySegment data,
      long hashes,
      int hashBytes,
      int count,
      int[] out,
      boolean prefix) {
    int base = 0;
    for (int most = 1; base < count; ) {
      int batch = Math.min(most, count - base);
      long first = hashes + (long) base * hashBytes;
      loadHeads(space, data, first, hashBytes, batch);
      for (int left = batch; left > 0; ) {
        loadRows(left);
        left = compareRows(space, left);
      }
      for (int i = 0; i < batch; i++) {
        out[base + i] = next[i] - 1;
        if (next[i] == 0 && prefix) {
          return base + i;
        }
      }
      base += batch;
      int run = follow(space, data, hashes, hashBytes, base, count, out);
      base += run;
      most = run >= LONG_RUN ? 1 : Math.clamp(2L * most, SMALL_BATCH, BATCH);
    }
    return count;
  }

  /**
   * Finds the rows of hashes from one on as long as each lies behind the row of the one before, as
   * the rows of blocks do that were published together: no bucket has to be loaded for them, and
   * the processor fetches their rows ahead.
   *
   * @param from first hash; the row of the one before is in {@code out}
   * @return number of hashes that were found
   */
  private int follow(
      int space, MemorySegment data, long hashes, int hashBytes, int from, int count, int[] out) {
    int row = out[from - 1];
    int i = from;
    while (row >= 0
        && i < count
        && ++row < highWater
        && matches(row, space, data, hashes + (long) i * hashBytes, hashBytes)
        && state(row) == RESIDENT) {
      out[i++] = row;
    }
    return i - from;
  }

  /**
   * Loads the head of each hash's bucket. A processor follows so many instructions at once as its
   * reorder buffer holds, so the fewer there are from one load that misses the caches to the next,
   * the more of the misses overlap: hence loops that do nothing but load, from offsets made before.
   */
  private void loadHeads(int space, MemorySegment data, long hashes, int hashBytes, int batch) {
    for (int i = 0; i < batch; i++) {
      long hash = hashes + (long) i * hashBytes;
      long word0 = hashWord(data, hash, hashBytes, 0);
      long word1 = hashWord(data, hash, hashBytes, 1);
      long word2 = hashWord(data, hash, hashBytes, 2);
      long word3 = hashWord(data, hash, hashBytes, 3);
      words[4 * i] = word0;
      words[4 * i + 1] = word1;
      words[4 * i + 2] = word2;
      words[4 * i + 3] = word3;
      offsets[i] = bucketOf(mix(word0, word1, word2, word3, space));
    }
    for (int i = 0; i < batch; i++) {
      next[i] = Memory.getInt(buckets, offsets[i]);
    }
    for (int i = 0; i < batch; i++) {
      offsets[i] = at(Math.max(0, next[i] - 1));
      places[i] = i;
    }
  }

  private void loadRows(int count) {
    int all = 0;
    for (int i = 0; i < count; i++) {
      all |= Memory.getInt(rows, offsets[i]);
    }
    touched = all;
  }

  /**
   * Compares hashes with the rows they are at, and moves those on whose row is another's. No branch
   * depends on the outcome.
   *
   * @return number of hashes that were moved on to a row
   */
  private int compareRows(int space, int count) {
    int left = 0;
    for (int i = 0; i < count; i++) {
      int place = places[i];
      long at = offsets[i];
      long difference =
          (Memory.getLong(rows, at) ^ words[4 * place])
              | (Memory.getLong(rows, at + 8) ^ words[4 * place + 1])
              | (Memory.getLong(rows, at + 16) ^ words[4 * place + 2])
              | (Memory.getLong(rows, at + 24) ^ words[4 * place + 3])
              | (Memory.getInt(rows, at + SPACE) ^ space);
      int row = next[place];
      int second = Memory.getInt(rows, at + NEXT);
      int moves = (int) ((difference | -difference) >> 63) & (-row >> 31); // all ones or zero
      int after = row ^ ((row ^ second) & moves);
      next[place] = after;
      places[left] = place;
      offsets[left] = at(Math.max(0, after - 1));
      left -= moves & (-after >> 31);
    }
    return left;
  }

  private int walk(int head, int space, MemorySegment data, long hash, int hashBytes) {
    for (int next = head; next != 0; next = Memory.getInt(rows, at(next - 1) + NEXT)) {
      if (matches(next - 1, space, data, hash, hashBytes)) {
        return next - 1;
      }
    }
    return -1;
  }

  private boolean matches(int row, int space, MemorySegment data, long hash, int hashBytes) {
    long at = at(row);
    return Memory.getLong(rows, at) == hashWord(data, hash, hashBytes, 0)
        && Memory.getLong(rows, at + 8) == hashWord(data, hash, hashBytes, 1)
        && Memory.getLong(rows, at + 16) == hashWord(data, hash, hashBytes, 2)
        && Memory.getLong(rows, at + 24) == hashWord(data, hash, hashBytes, 3)
        && Memory.getInt(rows, at + SPACE) == space;
  }

  /** Finds one resident row; -1 when there is none. */
  int find(int space, MemorySegment data, long hash, int hashBytes) {
    int head = Memory.getInt(buckets, bucketOf(mix(data, hash, hashBytes, space)));
    return walk(head, space, data, hash, hashBytes);
  }

  /** The resident row with the key of {@code row}; -1 when there is none. */
  int findSame(int row) {
    int space = space(row);
    int head = Memory.getInt(buckets, bucketOf(mixOfRow(row, space)));
    return walk(head, space, rows, at(row), 32);
  }

  /** Makes an unsealed row resident. */
  void insert(int row) {
    long bucket = bucketOf(mixOfRow(row, space(row)));
    Memory.putInt(rows, at(row) + NEXT, Memory.getInt(buckets, bucket));
    Memory.putInt(buckets, bucket, row + 1);
    setState(row, RESIDENT);
    resident++;
    while (half + split < 2L * resident) {
      splitBucket();
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
      long bucket = bucketOf(mixOfRow(row, space(row)));
      Memory.putInt(rows, at(row) + NEXT, Memory.getInt(buckets, bucket));
      Memory.putInt(buckets, bucket, row + 1);
    }
  }

  /** Takes a resident row out of the table; it is unsealed again. */
  void remove(int row) {
    long bucket = bucketOf(mixOfRow(row, space(row)));
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
        throw new IllegalStateException("row is not in its bucket: row=" + row);
      }
      Memory.putInt(rows, at(before - 1) + NEXT, Memory.getInt(rows, at(row) + NEXT));
    }
    setState(row, UNSEALED);
    resident--;
  }

  private void setState(int row, int state) {
    Memory.putInt(rows, at(row) + SLOT, slot(row) | state << STATE_SHIFT);
  }

  int state(int row) {
    return Memory.getInt(rows, at(row) + SLOT) >>> STATE_SHIFT & STATE_MASK;
  }

  /** True when a resident row has the mark. */
  boolean hasMark(int row, int mark) {
    return (Memory.getInt(rows, at(row) + SLOT) & mark) != 0;
  }

  /** Sets a mark of a resident row. */
  void setMark(int row, int mark) {
    Memory.putInt(rows, at(row) + SLOT, Memory.getInt(rows, at(row) + SLOT) | mark);
  }

  /** Clears a mark. */
  void clearMark(int row, int mark) {
    Memory.putInt(rows, at(row) + SLOT, Memory.getInt(rows, at(row) + SLOT) & ~mark);
  }

  /** Memory in which {@link #hashAt} finds the hash of a row, 32 bytes with zeros behind it. */
  MemorySegment hashes() {
    return rows;
  }

  static long hashAt(int row) {
    return at(row);
  }

  int space(int row) {
    return Memory.getInt(rows, at(row) + SPACE);
  }

  int pins(int row) {
    return Memory.getInt(rows, at(row) + PINS);
  }

  /** Adds to the pins of a row and returns their new number. */
  int addPins(int row, int delta) {
    int pins = pins(row) + delta;
    if (pins < 0) {
      throw new IllegalStateException("row unpinned twice: row=" + row);
    }
    Memory.putInt(rows, at(row) + PINS, pins);
    return pins;
  }

  int crc(int row) {
    return Memory.getInt(rows, at(row) + CRC);
  }

  void setCrc(int row, int crc) {
    Memory.putInt(rows, at(row) + CRC, crc);
  }

  long allocation(int row) {
    return Memory.getLong(rows, at(row) + ALLOCATION);
  }

  int slab(int row) {
    return Memory.getInt(rows, at(row) + SLAB);
  }

  int slot(int row) {
    return Memory.getInt(rows, at(row) + SLOT) & SLOT_MASK;
  }

  int resident() {
    return resident;
  }

  /** Bytes of rows and buckets that were ever used. */
  long usedBytes() {
    return (long) highWater * ROW_BYTES + (half + split) * Integer.BYTES;
  }

  /** Most rows that were ever in use at once. */
  int highWater() {
    return highWater;
  }

  /** Value that keeps prefetching loads from being removed; of no other meaning. */
  long prefetchWitness() {
    return touched;
  }
}
