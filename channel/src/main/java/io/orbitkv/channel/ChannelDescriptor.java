package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * Layout of the channel memfd of one session. Constants and the checks of the region header.
 *
 * <pre>
 * offset  bytes  field             written by
 *      0      8  magic             Manager, before version
 *      8      4  version           Manager, last, with release
 *     12      4  ringCapacity      Manager; commands a ring
 *     16      8  byteRingBytes     Manager; bytes a byte ring
 *     24      8  totalBytes        Manager
 *     32      8  epochHigh         Manager
 *     40      8  epochLow          Manager
 *     48      4  sessionSlot       Manager
 *    128      4  sessionState      Manager; 1 open, 2 closed
 *    132      4  managerSleeps     Manager; 1 while it waits on manager-wake
 *    256      4  restoreSleeps     engine; 1 while it waits on restore-wake
 *    384      4  publishSleeps     engine; 1 while it waits on publish-wake
 *    512         four rings, each: producer line 128, consumer line 128, ringCapacity slots of 64
 *                page-aligned: four byte rings of byteRingBytes
 * </pre>
 *
 * A line that one process writes and the other polls is 128 bytes, so that neighbours and
 * prefetched pairs share none.
 */
public final class ChannelDescriptor {
  /** "OKVCHAN1" in ASCII, first byte lowest. */
  public static final long MAGIC = 0x314e_4148_4356_4b4fL;

  /** Commands a ring. */
  public static final int RING_CAPACITY = 1024;

  /** Bytes a byte ring: room for one span of the largest size wherever the last one ended. */
  public static final int BYTE_RING_BYTES = 8 << 20;

  /** Ring of queries, restores and releases, engine to Manager. */
  public static final int QUERY_REQUESTS = 0;

  /** Ring of replies to {@link #QUERY_REQUESTS}, Manager to engine. */
  public static final int QUERY_REPLIES = 1;

  /** Ring of publishes, engine to Manager. */
  public static final int PUBLISH_REQUESTS = 2;

  /** Ring of replies to {@link #PUBLISH_REQUESTS}, Manager to engine. */
  public static final int PUBLISH_REPLIES = 3;

  /** Value of sessionState while commands are taken. */
  public static final int OPEN = 1;

  /** Value of sessionState once the Manager takes no more commands. */
  public static final int CLOSED = 2;

  static final long MAGIC_OFFSET = 0;
  static final long VERSION_OFFSET = 8;
  static final long RING_CAPACITY_OFFSET = 12;
  static final long BYTE_RING_BYTES_OFFSET = 16;
  static final long TOTAL_BYTES_OFFSET = 24;
  static final long EPOCH_HIGH_OFFSET = 32;
  static final long EPOCH_LOW_OFFSET = 40;
  static final long SESSION_SLOT_OFFSET = 48;

  /** Offset of the session state. */
  public static final long SESSION_STATE_OFFSET = 128;

  /** Offset of the Manager's sleep announcement. */
  public static final long MANAGER_SLEEPS_OFFSET = 132;

  /** Offset of the engine's sleep announcement on restore-wake. */
  public static final long RESTORE_SLEEPS_OFFSET = 256;

  /** Offset of the engine's sleep announcement on publish-wake. */
  public static final long PUBLISH_SLEEPS_OFFSET = 384;

  static final long RINGS_OFFSET = 512;
  static final int LINE_BYTES = 128;
  static final int RINGS = 4;
  static final long RING_BYTES = 2L * LINE_BYTES + (long) RING_CAPACITY * Command.BYTES;
  static final long BYTE_RINGS_OFFSET = alignUp(RINGS_OFFSET + RINGS * RING_BYTES, 4096);

  /** Bytes of the whole region. */
  public static final long REGION_BYTES = BYTE_RINGS_OFFSET + (long) RINGS * BYTE_RING_BYTES;

  private ChannelDescriptor() {}

  static long ringOffset(int ring) {
    return RINGS_OFFSET + ring * RING_BYTES;
  }

  static long byteRingOffset(int ring) {
    return BYTE_RINGS_OFFSET + (long) ring * BYTE_RING_BYTES;
  }

  /** Writes the header of a fresh, zeroed region; the version goes last. */
  public static void format(MemorySegment region, long epochHigh, long epochLow, int sessionSlot) {
    Memory.putLong(region, MAGIC_OFFSET, MAGIC);
    Memory.putInt(region, RING_CAPACITY_OFFSET, RING_CAPACITY);
    Memory.putLong(region, BYTE_RING_BYTES_OFFSET, BYTE_RING_BYTES);
    Memory.putLong(region, TOTAL_BYTES_OFFSET, REGION_BYTES);
    Memory.putLong(region, EPOCH_HIGH_OFFSET, epochHigh);
    Memory.putLong(region, EPOCH_LOW_OFFSET, epochLow);
    Memory.putInt(region, SESSION_SLOT_OFFSET, sessionSlot);
    Memory.putInt(region, SESSION_STATE_OFFSET, OPEN);
    Memory.putIntRelease(region, VERSION_OFFSET, Protocol.CHANNEL_VERSION); // SYNC: channel header
  }

  /**
   * Checks the header of a region made by the other process.
   *
   * @throws ProtocolException naming what was found and what was wanted
   */
  public static void check(MemorySegment region) {
    if (region.byteSize() != REGION_BYTES) {
      throw new ProtocolException(
          Status.INVALID,
          "channel region: bytes=" + region.byteSize() + ", wanted=" + REGION_BYTES);
    }
    int version = Memory.getIntAcquire(region, VERSION_OFFSET); // SYNC: channel header
    if (version != Protocol.CHANNEL_VERSION) {
      throw new ProtocolException(
          Status.VERSION_MISMATCH,
          "channel region: version=" + version + ", wanted=" + Protocol.CHANNEL_VERSION);
    }
    check("magic", Memory.getLong(region, MAGIC_OFFSET), MAGIC);
    check("ringCapacity", Memory.getInt(region, RING_CAPACITY_OFFSET), RING_CAPACITY);
    check("byteRingBytes", Memory.getLong(region, BYTE_RING_BYTES_OFFSET), BYTE_RING_BYTES);
    check("totalBytes", Memory.getLong(region, TOTAL_BYTES_OFFSET), REGION_BYTES);
  }

  private static void check(String field, long found, long wanted) {
    if (found != wanted) {
      throw new ProtocolException(
          Status.INVALID, "channel region: " + field + "=" + found + ", wanted=" + wanted);
    }
  }

  static long alignUp(long value, long alignment) {
    return (value + alignment - 1) & -alignment;
  }
}
