package io.orbitkv.channel;

import static java.lang.foreign.MemoryLayout.structLayout;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.nio.ByteOrder;

/**
 * One command or reply, copied out of or about to be written into a ring slot. Belongs to one
 * thread.
 *
 * <pre>
 * offset  bytes  field       access
 *      0      2  version     plain, published by sequence; {@link Protocol#CHANNEL_VERSION}
 *      2      2  opcode      plain; {@link Opcode}
 *      4      4  status      plain; flags of a request, {@link Status} code of a reply
 *      8      8  requestId   plain
 *     16      8  epoch       plain; low half of the Manager epoch
 *     24      4  dataOffset  plain; offset of the data in the byte ring beside this ring
 *     28      4  dataLength  plain; bytes, 0 for none
 *     32      8  generation  plain; {@link ByteRing} position of the data
 *     40      8  scalar0     plain
 *     48      8  scalar1     plain
 *     56      8  sequence    release and acquire; ring position plus one
 * </pre>
 */
public final class Command {
  /** Layout of a ring slot: one cache line. */
  public static final StructLayout LAYOUT =
      structLayout(
          JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN).withName("version"),
          JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN).withName("opcode"),
          JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).withName("status"),
          JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).withName("requestId"),
          JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).withName("epoch"),
          JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).withName("dataOffset"),
          JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).withName("dataLength"),
          JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).withName("generation"),
          JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).withName("scalar0"),
          JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).withName("scalar1"),
          JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).withName("sequence"));

  /** Bytes of a slot. */
  public static final int BYTES = (int) LAYOUT.byteSize();

  static final long VERSION_OFFSET = offset("version");
  static final long OPCODE_OFFSET = offset("opcode");
  static final long STATUS_OFFSET = offset("status");
  static final long REQUEST_ID_OFFSET = offset("requestId");
  static final long EPOCH_OFFSET = offset("epoch");
  static final long DATA_OFFSET_OFFSET = offset("dataOffset");
  static final long DATA_LENGTH_OFFSET = offset("dataLength");
  static final long GENERATION_OFFSET = offset("generation");
  static final long SCALAR0_OFFSET = offset("scalar0");
  static final long SCALAR1_OFFSET = offset("scalar1");
  static final long SEQUENCE_OFFSET = offset("sequence");

  /** Protocol version of the sender. */
  public int version;

  /** One of {@link Opcode}. */
  public int opcode;

  /** Flags of a request, {@link Status} code of a reply. */
  public int status;

  /** Chosen by the requester, repeated in the reply. */
  public long requestId;

  /** Low half of the Manager epoch. */
  public long epoch;

  /** Offset of the data in the byte ring; see {@link ByteRing}. */
  public int dataOffset;

  /** Bytes of the data; 0 for none. */
  public int dataLength;

  /** Byte ring position of the data, which only grows. */
  public long generation;

  /** First operand. */
  public long scalar0;

  /** Second operand. */
  public long scalar1;

  /** Sets all fields of a command without data. */
  public Command set(
      int opcode, int status, long requestId, long epoch, long scalar0, long scalar1) {
    this.version = Protocol.CHANNEL_VERSION;
    this.opcode = opcode;
    this.status = status;
    this.requestId = requestId;
    this.epoch = epoch;
    this.dataOffset = 0;
    this.dataLength = 0;
    this.generation = 0;
    this.scalar0 = scalar0;
    this.scalar1 = scalar1;
    return this;
  }

  /** Points to a span of the byte ring beside the ring. */
  public Command data(int dataOffset, int dataLength, long generation) {
    this.dataOffset = dataOffset;
    this.dataLength = dataLength;
    this.generation = generation;
    return this;
  }

  void readFrom(MemorySegment region, long slot) {
    version = Memory.getShort(region, slot + VERSION_OFFSET);
    opcode = Memory.getShort(region, slot + OPCODE_OFFSET);
    status = Memory.getInt(region, slot + STATUS_OFFSET);
    requestId = Memory.getLong(region, slot + REQUEST_ID_OFFSET);
    epoch = Memory.getLong(region, slot + EPOCH_OFFSET);
    dataOffset = Memory.getInt(region, slot + DATA_OFFSET_OFFSET);
    dataLength = Memory.getInt(region, slot + DATA_LENGTH_OFFSET);
    generation = Memory.getLong(region, slot + GENERATION_OFFSET);
    scalar0 = Memory.getLong(region, slot + SCALAR0_OFFSET);
    scalar1 = Memory.getLong(region, slot + SCALAR1_OFFSET);
  }

  void writeTo(MemorySegment region, long slot) {
    Memory.putShort(region, slot + VERSION_OFFSET, (short) version);
    Memory.putShort(region, slot + OPCODE_OFFSET, (short) opcode);
    Memory.putInt(region, slot + STATUS_OFFSET, status);
    Memory.putLong(region, slot + REQUEST_ID_OFFSET, requestId);
    Memory.putLong(region, slot + EPOCH_OFFSET, epoch);
    Memory.putInt(region, slot + DATA_OFFSET_OFFSET, dataOffset);
    Memory.putInt(region, slot + DATA_LENGTH_OFFSET, dataLength);
    Memory.putLong(region, slot + GENERATION_OFFSET, generation);
    Memory.putLong(region, slot + SCALAR0_OFFSET, scalar0);
    Memory.putLong(region, slot + SCALAR1_OFFSET, scalar1);
  }

  private static long offset(String field) {
    return LAYOUT.byteOffset(java.lang.foreign.MemoryLayout.PathElement.groupElement(field));
  }
}
