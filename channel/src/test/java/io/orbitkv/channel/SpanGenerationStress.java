package io.orbitkv.channel;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE_INTERESTING;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.MemorySegment;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJ_Result;

/**
 * A span of a byte ring while its room is used again: the consumer gets the bytes of the span's own
 * generation. The first span lies in the ring when the actors begin; the second one takes its place
 * as soon as the consumer has freed it.
 */
final class SpanGenerationStress {
  private static final int RING = ChannelDescriptor.QUERY_REQUESTS;
  private static final int BYTES = 2 * Long.BYTES;
  private static final long FIRST = 1;
  private static final long SECOND = 2;
  private static final int TRIES = 1000;

  private SpanGenerationStress() {}

  /** Both ends of a byte ring, in a region that ends behind its first two cache lines. */
  abstract static class Ends {
    final MemorySegment region =
        MemorySegment.ofArray(
            new long[(int) ((ChannelDescriptor.byteRingOffset(RING) + 128) / Long.BYTES)]);
    final ByteRing.Producer producer = new ByteRing.Producer(region, RING);
    final Command command = new Command();

    Ends() {
      write(producer.tryClaim(BYTES), FIRST, command);
    }

    private void write(long at, long value, Command into) {
      Memory.putLong(region, at, value);
      Memory.putLong(region, at + Long.BYTES, value);
      producer.commit(BYTES, into);
    }

    /** Writes the second span once the first one's room is free, which may not be in time. */
    final void produce() {
      for (int i = 0; i < TRIES; i++) {
        if (Memory.getLongAcquire(region, headAt()) != 0) {
          write(producer.tryClaim(BYTES), SECOND, new Command());
          return;
        }
      }
    }

    static long headAt() {
      return ChannelDescriptor.ringOffset(RING) + ChannelDescriptor.LINE_BYTES + Long.BYTES;
    }

    static void put(MemorySegment taken, JJ_Result result) {
      result.r1 = Memory.getLong(taken, 0);
      result.r2 = Memory.getLong(taken, Long.BYTES);
    }
  }

  /** The ring. */
  @JCStressTest
  @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "the span of the command")
  @Outcome(expect = FORBIDDEN, desc = "bytes of another generation")
  @State
  public static class Span extends Ends {
    @Actor
    public final void producer() {
      produce();
    }

    @Actor
    public final void consumer(JJ_Result result) {
      MemorySegment into = MemorySegment.ofArray(new long[2]);
      new ByteRing.Consumer(region, RING).take(command, into);
      put(into, result);
    }
  }

  /** The weakened twin: the room is freed before the bytes are copied. */
  @JCStressTest
  @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "the span of the command")
  @Outcome(
      id = {"1, 2", "2, 1", "2, 2"},
      expect = ACCEPTABLE_INTERESTING,
      desc = "bytes of another generation")
  @Outcome(expect = FORBIDDEN, desc = "nonsense")
  @State
  public static class WeakenedSpan extends Ends {
    @Actor
    public final void producer() {
      produce();
    }

    @Actor
    public final void consumer(JJ_Result result) {
      long at = ChannelDescriptor.byteRingOffset(RING) + 16 + command.dataOffset;
      Memory.putLongRelease(region, headAt(), command.generation + 64);
      MemorySegment into = MemorySegment.ofArray(new long[2]);
      Memory.putLong(into, 0, Memory.getLongAcquire(region, at));
      Memory.putLong(into, Long.BYTES, Memory.getLongAcquire(region, at + Long.BYTES));
      put(into, result);
    }
  }
}
