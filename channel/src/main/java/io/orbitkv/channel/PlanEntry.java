package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * One block of a plan in the plan bank. Static accessors; {@code at} is the offset of the entry in
 * the grant region.
 *
 * <pre>
 * offset  bytes  field       written by
 *      0      2  arena       Manager
 *      2      2  group       Manager
 *      4      4  page        Manager; page of the engine's group
 *      8      8  allocation  Manager; allocation id
 *     16      8  offset      Manager; bytes into the arena
 *     24      4  length      Manager; bytes
 *     28      4  crc32c      Manager for a restore, engine for a publish; also
 *                             engine for a restored block whose bytes have another sum
 * </pre>
 */
public final class PlanEntry {
  /** Bytes of an entry. */
  public static final int BYTES = 32;

  private PlanEntry() {}

  /** Manager: writes an entry. */
  public static void put(
      MemorySegment region,
      long at,
      int arena,
      int group,
      int page,
      long allocation,
      long offset,
      int length,
      int crc) {
    Memory.putShort(region, at, (short) arena);
    Memory.putShort(region, at + 2, (short) group);
    Memory.putInt(region, at + 4, page);
    Memory.putLong(region, at + 8, allocation);
    Memory.putLong(region, at + 16, offset);
    Memory.putInt(region, at + 24, length);
    Memory.putInt(region, at + 28, crc);
  }

  /** Index of the arena. */
  public static int arena(MemorySegment region, long at) {
    return Short.toUnsignedInt(Memory.getShort(region, at));
  }

  /** Group id. */
  public static int group(MemorySegment region, long at) {
    return Short.toUnsignedInt(Memory.getShort(region, at + 2));
  }

  /** Page of the engine's group. */
  public static int page(MemorySegment region, long at) {
    return Memory.getInt(region, at + 4);
  }

  /** Allocation id. */
  public static long allocation(MemorySegment region, long at) {
    return Memory.getLong(region, at + 8);
  }

  /** Bytes into the arena. */
  public static long offset(MemorySegment region, long at) {
    return Memory.getLong(region, at + 16);
  }

  /** Bytes of the block. */
  public static int length(MemorySegment region, long at) {
    return Memory.getInt(region, at + 24);
  }

  /** CRC32C of the block. */
  public static int crc(MemorySegment region, long at) {
    return Memory.getInt(region, at + 28);
  }

  /** Engine: leaves the CRC32C of a published block. */
  public static void putCrc(MemorySegment region, long at, int crc) {
    Memory.putInt(region, at + 28, crc);
  }
}
