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

/** A command that is seen is seen whole. */
final class RingPublicationStress {
  private static final int RING = ChannelDescriptor.QUERY_REQUESTS;
  private static final long SLOT =
      ChannelDescriptor.ringOffset(RING) + 2L * ChannelDescriptor.LINE_BYTES;

  private RingPublicationStress() {}

  /** A channel region that ends behind the first slot of the first ring. */
  static MemorySegment region() {
    return MemorySegment.ofArray(new long[(int) ((SLOT + Command.BYTES) / Long.BYTES)]);
  }

  private static Command command() {
    return new Command().set(Opcode.PING, 0, 7, 0, 7, 7);
  }

  private static void read(MemorySegment region, JJ_Result result) {
    Command command = new Command();
    if (new CommandRing.Consumer(region, RING).tryRead(command)) {
      result.r1 = command.requestId;
      result.r2 = command.scalar1;
    } else {
      result.r1 = -1;
      result.r2 = -1;
    }
  }

  /** The ring. */
  @JCStressTest
  @Outcome(id = "-1, -1", expect = ACCEPTABLE, desc = "not there yet")
  @Outcome(id = "7, 7", expect = ACCEPTABLE, desc = "whole")
  @Outcome(expect = FORBIDDEN, desc = "seen before it was written")
  @State
  public static class Ring {
    private final MemorySegment region = region();

    @Actor
    public final void producer() {
      new CommandRing.Producer(region, RING).tryWrite(command());
    }

    @Actor
    public final void consumer(JJ_Result result) {
      read(region, result);
    }
  }

  /** The weakened twin: the sequence is not the last thing that is written. */
  @JCStressTest
  @Outcome(id = "-1, -1", expect = ACCEPTABLE, desc = "not there yet")
  @Outcome(id = "7, 7", expect = ACCEPTABLE, desc = "whole")
  @Outcome(
      id = {"0, 0", "7, 0", "0, 7"},
      expect = ACCEPTABLE_INTERESTING,
      desc = "seen before it was written")
  @Outcome(expect = FORBIDDEN, desc = "nonsense")
  @State
  public static class WeakenedRing {
    private final MemorySegment region = region();

    @Actor
    public final void producer() {
      Memory.putLongRelease(region, SLOT + Command.SEQUENCE_OFFSET, 1);
      Command command = command();
      Memory.putLongRelease(region, SLOT + Command.REQUEST_ID_OFFSET, command.requestId);
      Memory.putLongRelease(region, SLOT + Command.SCALAR1_OFFSET, command.scalar1);
    }

    @Actor
    public final void consumer(JJ_Result result) {
      read(region, result);
    }
  }
}
