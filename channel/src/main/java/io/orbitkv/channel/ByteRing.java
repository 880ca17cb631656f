package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * Ring of spans of variable-length data beside a {@link CommandRing}. A span is contiguous and at
 * most {@link Protocol#MAX_SPAN_BYTES} long. Its generation is its position in the endless stream
 * of bytes, so it only grows and gives the offset as generation modulo ring size. Each end belongs
 * to one thread at a time.
 *
 * <p>The consumer's position lives in the consumer line of the command ring:
 *
 * <pre>
 * offset  bytes  field     written by
 *    136      8  byteHead  consumer, release; generation up to which the bytes are free again
 * </pre>
 *
 * and each span begins with a header that the consumer compares with the command:
 *
 * <pre>
 * offset  bytes  field
 *      0      8  generation
 *      8      4  length
 *     12      4  zero
 * </pre>
 *
 * A producer that finds the ring empty starts again at its beginning, so that a quiet channel keeps
 * using the same few cache lines and touches no further memory.
 */
public final class ByteRing {
  private static final long HEAD_OFFSET = ChannelDescriptor.LINE_BYTES + 8;
  private static final int HEADER_BYTES = 16;
  private static final int SIZE = ChannelDescriptor.BYTE_RING_BYTES;
  private static final int MASK = SIZE - 1;
  private static final int ALIGNMENT = 64;

  private ByteRing() {}

  private static long spanBytes(long length) {
    return ChannelDescriptor.alignUp(HEADER_BYTES + length, ALIGNMENT);
  }

  /** The writing end. */
  public static final class Producer {
    private final MemorySegment region;
    private final long base;
    private final long headAt;
    private long tail;
    private long headSeen;
    private long claimed;

    /** Opens the writing end of a fresh ring. */
    public Producer(MemorySegment region, int ring) {
      this.region = region;
      this.base = ChannelDescriptor.byteRingOffset(ring);
      this.headAt = ChannelDescriptor.ringOffset(ring) + HEAD_OFFSET;
    }

    /** True when a span of {@code length} bytes can be claimed now. */
    public boolean hasRoom(int length) {
      return place(length) >= 0;
    }

    /**
     * Claims room for a span and returns the offset in {@link #memory()} where its bytes go; -1
     * when there is no room. Nothing is seen by the consumer until {@link #commit}; a claim that is
     * not committed is simply claimed again.
     */
    public long tryClaim(int length) {
      long at = place(length);
      if (at < 0) {
        return -1;
      }
      claimed = at;
      return base + (at & MASK) + HEADER_BYTES;
    }

    /**
     * Ends the claimed span at {@code length} bytes, at most the length that was claimed, and
     * points the command to it. With no bytes there is no span: the command has no data, and the
     * room stays free.
     */
    public void commit(int length, Command command) {
      if (length == 0) {
        command.data(0, 0, 0);
        return;
      }
      long at = base + (claimed & MASK);
      Memory.putLong(region, at, claimed);
      Memory.putInt(region, at + 8, length);
      Memory.putInt(region, at + 12, 0);
      command.data((int) (claimed & MASK), length, claimed);
      tail = claimed + spanBytes(length);
    }

    /** The region that offsets of {@link #tryClaim} refer to. */
    public MemorySegment memory() {
      return region;
    }

    private long place(int length) {
      if (length < 0 || length > Protocol.MAX_SPAN_BYTES) {
        throw new IllegalArgumentException(
            "span bytes=" + length + ", limit=" + Protocol.MAX_SPAN_BYTES);
      }
      long need = spanBytes(length);
      long head = Memory.getLongAcquire(region, headAt); // SYNC: span freed
      if (head > headSeen && head <= tail) { // anything else is the other process's nonsense
        headSeen = head;
      }
      if (headSeen == tail) { // the ring is empty: begin again at offset 0
        tail = ChannelDescriptor.alignUp(tail, SIZE);
        headSeen = tail;
      }
      long at = tail;
      if ((at & MASK) + need > SIZE) {
        at = ChannelDescriptor.alignUp(at, SIZE); // a span never wraps
      }
      return at + need - headSeen <= SIZE ? at : -1;
    }
  }

  /** The reading end. */
  public static final class Consumer {
    private final MemorySegment region;
    private final long base;
    private final long headAt;
    private long head;

    /** Opens the reading end of a fresh ring. */
    public Consumer(MemorySegment region, int ring) {
      this.region = region;
      this.base = ChannelDescriptor.byteRingOffset(ring);
      this.headAt = ChannelDescriptor.ringOffset(ring) + HEAD_OFFSET;
    }

    /**
     * Copies the data of a command to the start of {@code into} and frees the span.
     *
     * @return the bytes copied; 0 when the command has no data
     * @throws ProtocolException when the command does not name the span that comes next or later
     */
    public int take(Command command, MemorySegment into) {
      int length = command.dataLength;
      long generation = command.generation;
      if (length == 0) {
        return 0;
      }
      check(command, into);
      MemorySegment.copy(region, base + (generation & MASK) + HEADER_BYTES, into, 0, length);
      head = generation + spanBytes(length);
      Memory.putLongRelease(region, headAt, head); // SYNC: span freed
      return length;
    }

    private void check(Command command, MemorySegment into) {
      int length = command.dataLength;
      long generation = command.generation;
      if (length < 0 || length > Protocol.MAX_SPAN_BYTES || length > into.byteSize()) {
        throw new ProtocolException(
            Status.LIMIT,
            "data of a command: bytes=" + length + ", limit=" + Protocol.MAX_SPAN_BYTES);
      }
      // A jump of less than two ring sizes covers the unused end of a lap and a new start on an
      // empty ring.
      boolean placed =
          generation >= head
              && generation - head < 2L * SIZE
              && generation % ALIGNMENT == 0
              && (generation & MASK) == command.dataOffset
              && (generation & MASK) + spanBytes(length) <= SIZE;
      if (!placed) {
        throw new ProtocolException(
            Status.INVALID,
            "data of a command: generation="
                + generation
                + ", offset="
                + command.dataOffset
                + ", next="
                + head);
      }
      long at = base + (generation & MASK);
      if (Memory.getLong(region, at) != generation || Memory.getInt(region, at + 8) != length) {
        throw new ProtocolException(
            Status.INVALID,
            "data of a command: span header differs, generation="
                + generation
                + ", length="
                + length);
      }
    }
  }
}
