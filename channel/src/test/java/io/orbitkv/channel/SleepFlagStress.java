package io.orbitkv.channel;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE_INTERESTING;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.MemorySegment;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/** Work that comes while its consumer goes to sleep: one of both sides notices. */
final class SleepFlagStress {
  private static final int RING = ChannelDescriptor.QUERY_REQUESTS;
  private static final long FLAG = ChannelDescriptor.MANAGER_SLEEPS_OFFSET;

  private SleepFlagStress() {}

  /** The announcement. */
  @JCStressTest
  @Outcome(
      id = {"true, false", "false, true", "true, true"},
      expect = ACCEPTABLE,
      desc = "the sleeper sees the work, or the producer the sleeper")
  @Outcome(expect = FORBIDDEN, desc = "the wake-up is lost")
  @State
  public static class Announcement {
    private final MemorySegment region = RingPublicationStress.region();

    @Actor
    public final void sleeper(ZZ_Result result) {
      SleepFlag.announce(region, FLAG);
      result.r1 = new CommandRing.Consumer(region, RING).hasNext();
    }

    @Actor
    public final void producer(ZZ_Result result) {
      new CommandRing.Producer(region, RING).tryWrite(new Command());
      SleepFlag.fence();
      result.r2 = SleepFlag.isAnnounced(region, FLAG);
    }
  }

  /** The weakened twin: release and acquire without the fences. */
  @JCStressTest
  @Outcome(
      id = {"true, false", "false, true", "true, true"},
      expect = ACCEPTABLE,
      desc = "the sleeper sees the work, or the producer the sleeper")
  @Outcome(id = "false, false", expect = ACCEPTABLE_INTERESTING, desc = "the wake-up is lost")
  @State
  public static class WeakenedAnnouncement {
    private final MemorySegment region = RingPublicationStress.region();

    @Actor
    public final void sleeper(ZZ_Result result) {
      Memory.putIntRelease(region, FLAG, 1);
      result.r1 = new CommandRing.Consumer(region, RING).hasNext();
    }

    @Actor
    public final void producer(ZZ_Result result) {
      new CommandRing.Producer(region, RING).tryWrite(new Command());
      result.r2 = Memory.getIntAcquire(region, FLAG) != 0;
    }
  }
}
