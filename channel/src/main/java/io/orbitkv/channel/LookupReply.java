package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * Layout of the answer to a LOOKUP command; static accessors, {@code at} is the start of the reply.
 *
 * <pre>
 * offset  bytes  field
 *      0      1  outcome         {@link #READY} and the like
 *      1      1  zero
 *      2      2  groups          g
 *      4      4  hashes          h, as asked
 *      8      4  leases          l
 *     12      4  leaseAgeMs      maximum age of the leases
 *     16   4·8   misses          count of each {@link MissReason}
 *     48   g groups of 16 + 8·ceil(h/64):
 *            0   2  group        id
 *            2   1  firstMiss    {@link MissReason} of the first missing block; 0 when none is missing
 *            4   4  present      blocks present in every namespace asked for
 *            8   4  prefix       blocks present before the first missing one
 *           16      bit i is set when hash i is present
 *         l leases of 16:
 *            0   8  leaseId
 *            8   4  blocks       blocks under the lease
 *           12   2  namespace    index in the request
 *           14   2  group        id
 * </pre>
 *
 * In prefix mode bits after the first missing block are not looked at and read 0.
 */
public final class LookupReply {
  /** At least one lease. */
  public static final int READY = 1;

  /** Blocks are on their way from another tier. */
  public static final int LOADING = 2;

  /** Refused by a budget for now. */
  public static final int BUSY = 3;

  /** Answer to a candidates lookup. */
  public static final int CANDIDATES = 4;

  /** Nothing restorable. */
  public static final int MISS = 5;

  private static final int HEADER_BYTES = 48;
  private static final int GROUP_BYTES = 16;
  private static final int LEASE_BYTES = 16;

  private LookupReply() {}

  /** Bytes of a group with its bitmap. */
  private static long groupBytes(int hashes) {
    return GROUP_BYTES + 8L * ((hashes + 63) >> 6);
  }

  /** Bytes of a reply. */
  public static long byteSize(int groups, int hashes, int leases) {
    return HEADER_BYTES + groups * groupBytes(hashes) + (long) leases * LEASE_BYTES;
  }

  /** Writes the fixed part and clears the miss counts. */
  public static void writeHeader(
      MemorySegment into,
      long at,
      int outcome,
      int groups,
      int hashes,
      int leases,
      int leaseAgeMs) {
    Memory.putShort(into, at, (short) outcome);
    Memory.putShort(into, at + 2, (short) groups);
    Memory.putInt(into, at + 4, hashes);
    Memory.putInt(into, at + 8, leases);
    Memory.putInt(into, at + 12, leaseAgeMs);
    for (long misses = at + 16; misses < at + HEADER_BYTES; misses += 4) {
      Memory.putInt(into, misses, 0);
    }
  }

  /** Sets the count of one reason. */
  public static void putMisses(MemorySegment into, long at, int reasonCode, int count) {
    Memory.putInt(into, at + 16 + 4L * reasonCode, count);
  }

  /** Count of one reason. */
  public static int misses(MemorySegment from, long at, MissReason reason) {
    return Memory.getInt(from, at + 16 + 4L * reason.code());
  }

  /** Offset of a group. */
  public static long groupAt(long at, int index, int hashes) {
    return at + HEADER_BYTES + index * groupBytes(hashes);
  }

  /** Writes the fixed part of a group. */
  public static void writeGroup(
      MemorySegment into, long groupAt, int group, int firstMiss, int present, int prefix) {
    Memory.putShort(into, groupAt, (short) group);
    Memory.putShort(into, groupAt + 2, (short) firstMiss);
    Memory.putInt(into, groupAt + 4, present);
    Memory.putInt(into, groupAt + 8, prefix);
    Memory.putInt(into, groupAt + 12, 0);
  }

  /** Sets 64 bits of a group's bitmap. */
  public static void putBits(MemorySegment into, long groupAt, int word, long bits) {
    Memory.putLong(into, groupAt + GROUP_BYTES + 8L * word, bits);
  }

  /** 64 bits of a group's bitmap. */
  public static long bits(MemorySegment from, long groupAt, int word) {
    return Memory.getLong(from, groupAt + GROUP_BYTES + 8L * word);
  }

  /** Offset of a lease. */
  public static long leaseAt(long at, int index, int groups, int hashes) {
    return at + HEADER_BYTES + groups * groupBytes(hashes) + (long) index * LEASE_BYTES;
  }

  /** Writes a lease. */
  public static void writeLease(
      MemorySegment into, long leaseAt, long leaseId, int blocks, int namespace, int group) {
    Memory.putLong(into, leaseAt, leaseId);
    Memory.putInt(into, leaseAt + 8, blocks);
    Memory.putShort(into, leaseAt + 12, (short) namespace);
    Memory.putShort(into, leaseAt + 14, (short) group);
  }

  /** Outcome of the lookup. */
  public static int outcome(MemorySegment from, long at) {
    return Memory.getByte(from, at);
  }

  /** Number of groups. */
  public static int groups(MemorySegment from, long at) {
    return Short.toUnsignedInt(Memory.getShort(from, at + 2));
  }

  /** Number of hashes asked for. */
  public static int hashes(MemorySegment from, long at) {
    return Memory.getInt(from, at + 4);
  }

  /** Number of leases. */
  public static int leases(MemorySegment from, long at) {
    return Memory.getInt(from, at + 8);
  }

  /** Maximum age of the leases in milliseconds. */
  public static int leaseAgeMs(MemorySegment from, long at) {
    return Memory.getInt(from, at + 12);
  }

  /** Id of a group. */
  public static int group(MemorySegment from, long groupAt) {
    return Short.toUnsignedInt(Memory.getShort(from, groupAt));
  }

  /** Reason of the first missing block of a group. */
  public static MissReason firstMiss(MemorySegment from, long groupAt) {
    return MissReason.of(Memory.getByte(from, groupAt + 2));
  }

  /** Blocks of a group present in every namespace. */
  public static int present(MemorySegment from, long groupAt) {
    return Memory.getInt(from, groupAt + 4);
  }

  /** Blocks of a group present before the first missing one. */
  public static int prefix(MemorySegment from, long groupAt) {
    return Memory.getInt(from, groupAt + 8);
  }

  /** Id of a lease. */
  public static long leaseId(MemorySegment from, long leaseAt) {
    return Memory.getLong(from, leaseAt);
  }

  /** Blocks under a lease. */
  public static int leaseBlocks(MemorySegment from, long leaseAt) {
    return Memory.getInt(from, leaseAt + 8);
  }

  /** Index of a lease's namespace in the request. */
  public static int leaseNamespace(MemorySegment from, long leaseAt) {
    return Short.toUnsignedInt(Memory.getShort(from, leaseAt + 12));
  }

  /** Group id of a lease. */
  public static int leaseGroup(MemorySegment from, long leaseAt) {
    return Short.toUnsignedInt(Memory.getShort(from, leaseAt + 14));
  }
}
