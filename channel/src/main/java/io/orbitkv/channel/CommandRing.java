package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * Single-producer single-consumer ring of {@link Command}s in the channel memfd. One process makes
 * a {@link Producer}, the other a {@link Consumer}; each belongs to one thread at a time.
 *
 * <pre>
 * offset  bytes  field      written by
 *      0      8  tail       producer; commands written, statistic only
 *    128      8  head       consumer, release; commands taken
 *    256         slots      producer; see {@link Command}
 * </pre>
 *
 * A slot is full when its sequence equals its position plus one, so a command costs one cache line
 * from producer to consumer. The producer looks at head only when its last look leaves no room.
 */
public final class CommandRing {
  private static final long TAIL_OFFSET = 0;
  private static final long HEAD_OFFSET = ChannelDescriptor.LINE_BYTES;
  private static final long SLOTS_OFFSET = 2L * ChannelDescriptor.LINE_BYTES;
  private static final int CAPACITY = ChannelDescriptor.RING_CAPACITY;
  private static final int MASK = CAPACITY - 1;

  private CommandRing() {}

  /** The writing end. */
  public static final class Producer {
    private final MemorySegment region;
    private final long base;
    private long tail;
    private long headSeen;

    /** Opens the writing end of a fresh ring. */
    public Producer(MemorySegment region, int ring) {
      this.region = region;
      this.base = ChannelDescriptor.ringOffset(ring);
    }

    /** True when {@link #tryWrite} would succeed now. */
    public boolean hasRoom() {
      if (tail - headSeen < CAPACITY) {
        return true;
      }
      long head = Memory.getLongAcquire(region, base + HEAD_OFFSET); // SYNC: slot freed
      if (head > headSeen && head <= tail) { // anything else is the other process's nonsense
        headSeen = head;
      }
      return tail - headSeen < CAPACITY;
    }

    /** Writes one command; false, with nothing written, when the ring is full. */
    public boolean tryWrite(Command command) {
      if (!hasRoom()) {
        return false;
      }
      long slot = base + SLOTS_OFFSET + (tail & MASK) * Command.BYTES;
      command.writeTo(region, slot);
      tail++;
      Memory.putLongRelease(region, slot + Command.SEQUENCE_OFFSET, tail); // SYNC: slot filled
      Memory.putLong(region, base + TAIL_OFFSET, tail);
      return true;
    }
  }

  /** The reading end. */
  public static final class Consumer {
    private final MemorySegment region;
    private final long base;
    private long head;

    /** Opens the reading end of a fresh ring. */
    public Consumer(MemorySegment region, int ring) {
      this.region = region;
      this.base = ChannelDescriptor.ringOffset(ring);
    }

    /** True when a command waits. */
    public boolean hasNext() {
      long slot = base + SLOTS_OFFSET + (head & MASK) * Command.BYTES;
      return Memory.getLongAcquire(region, slot + Command.SEQUENCE_OFFSET)
          == head + 1; // SYNC: slot filled
    }

    /** Copies the next command out and frees its slot; false when there is none. */
    public boolean tryRead(Command into) {
      if (!hasNext()) {
        return false;
      }
      into.readFrom(region, base + SLOTS_OFFSET + (head & MASK) * Command.BYTES);
      head++;
      Memory.putLongRelease(region, base + HEAD_OFFSET, head); // SYNC: slot freed
      return true;
    }
  }
}
