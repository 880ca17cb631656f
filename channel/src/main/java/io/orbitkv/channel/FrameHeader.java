package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * Header of a lifecycle frame; a protobuf message of {@link #length} bytes follows.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  magic    "OKVL" in ASCII, first byte lowest
 *      4      2  version  {@link Protocol#LIFECYCLE_VERSION}
 *      6      2  zero
 *      8      8  epoch    low half of the Manager epoch; 0 before it is known
 *     16      4  length   bytes of the message, at most {@link Protocol#MAX_FRAME_BYTES}
 * </pre>
 */
public record FrameHeader(int version, long epoch, int length) {
  /** Bytes of a header. */
  public static final int BYTES = 20;

  /** First four bytes of every frame. */
  public static final int MAGIC = 0x4c56_4b4f;

  /** Writes the header at the start of {@code into}. */
  public void writeTo(MemorySegment into) {
    Memory.putInt(into, 0, MAGIC);
    Memory.putShort(into, 4, (short) version);
    Memory.putShort(into, 6, (short) 0);
    Memory.putLong(into, 8, epoch);
    Memory.putInt(into, 16, length);
  }

  /**
   * Reads and checks a header.
   *
   * @throws ProtocolException with {@link Status#INVALID} for foreign bytes, {@link
   *     Status#VERSION_MISMATCH} naming both versions, or {@link Status#LIMIT} naming length and
   *     limit
   */
  public static FrameHeader readFrom(MemorySegment from) {
    int magic = Memory.getInt(from, 0);
    if (magic != MAGIC) {
      throw new ProtocolException(
          Status.INVALID, "frame: magic=0x%08x, wanted=0x%08x".formatted(magic, MAGIC));
    }
    int version = Short.toUnsignedInt(Memory.getShort(from, 4));
    if (version != Protocol.LIFECYCLE_VERSION) {
      throw new ProtocolException(
          Status.VERSION_MISMATCH,
          "frame: lifecycle version="
              + version
              + ", this side has version="
              + Protocol.LIFECYCLE_VERSION);
    }
    int length = Memory.getInt(from, 16);
    if (length < 0 || length > Protocol.MAX_FRAME_BYTES) {
      throw new ProtocolException(
          Status.LIMIT,
          "frame: bytes="
              + Integer.toUnsignedString(length)
              + ", limit="
              + Protocol.MAX_FRAME_BYTES);
    }
    return new FrameHeader(version, Memory.getLong(from, 8), length);
  }
}
