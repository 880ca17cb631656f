package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * Layout of the answer to a PUBLISH command, sent when the operation has been reaped. The record
 * decides when it is lost. Static accessors; {@code at} is the start of the reply.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  blocks   b, as asked
 *      4      4  zero
 *      8      b  result of each block, in the order of the request
 * </pre>
 */
public final class PublishReply {
  /** Written and visible. */
  public static final int STORED = 1;

  /** Already held: by an earlier block of the same key, whose bytes stay. */
  public static final int HELD = 2;

  /** No room. */
  public static final int REFUSED_POOL_FULL = 3;

  /** Not written: the operation was cancelled, revoked or failed. */
  public static final int NOT_STORED = 4;

  private static final int HEADER_BYTES = 8;

  private PublishReply() {}

  /** Bytes of a reply. */
  public static long byteSize(int blocks) {
    return HEADER_BYTES + (long) blocks;
  }

  /** Writes the fixed part. */
  public static void writeHeader(MemorySegment into, long at, int blocks) {
    Memory.putInt(into, at, blocks);
    Memory.putInt(into, at + 4, 0);
  }

  /** Number of blocks. */
  public static int blocks(MemorySegment from, long at) {
    return Memory.getInt(from, at);
  }

  /** Sets the result of one block. */
  public static void putResult(MemorySegment into, long at, int index, int result) {
    Memory.putByte(into, at + HEADER_BYTES + index, (byte) result);
  }

  /** Result of one block. */
  public static int result(MemorySegment from, long at, int index) {
    return Memory.getByte(from, at + HEADER_BYTES + index);
  }
}
