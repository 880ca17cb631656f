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

/** Cancel and grant of one Preparing record: just one of both moves it. */
final class GrantCasStress {
  private static final int SLOT = 0;
  private static final long PREPARING = GrantWord.of(1, 0, GrantState.PREPARING);

  private GrantCasStress() {}

  /** A grant region that ends behind its first record, with that record in Preparing. */
  private static MemorySegment region() {
    long bytes = GrantTable.TABLE_OFFSET + GrantTable.RECORD_BYTES;
    MemorySegment region = MemorySegment.ofArray(new long[(int) (bytes / Long.BYTES)]);
    Memory.putLong(region, GrantTable.TABLE_OFFSET, PREPARING);
    return region;
  }

  /** The moves of the table. */
  @JCStressTest
  @Outcome(
      id = {"true, false", "false, true"},
      expect = ACCEPTABLE,
      desc = "one wins")
  @Outcome(expect = FORBIDDEN, desc = "both win, or none")
  @State
  public static class Moves {
    private final GrantTable table = GrantTable.format(region());

    @Actor
    public final void engine(ZZ_Result result) {
      result.r1 = table.tryEngineMove(SLOT, PREPARING, GrantState.CANCEL_REQUESTED);
    }

    @Actor
    public final void manager(ZZ_Result result) {
      result.r2 = table.tryManagerMove(SLOT, PREPARING, GrantState.GRANTED);
    }
  }

  /** The weakened twin: compares, then writes. */
  @JCStressTest
  @Outcome(
      id = {"true, false", "false, true"},
      expect = ACCEPTABLE,
      desc = "one wins")
  @Outcome(
      id = "true, true",
      expect = ACCEPTABLE_INTERESTING,
      desc = "memory is granted to one who was told that it is free")
  @Outcome(expect = FORBIDDEN, desc = "none wins")
  @State
  public static class WeakenedMoves {
    private final MemorySegment region = region();

    @Actor
    public final void engine(ZZ_Result result) {
      result.r1 = move(GrantState.CANCEL_REQUESTED);
    }

    @Actor
    public final void manager(ZZ_Result result) {
      result.r2 = move(GrantState.GRANTED);
    }

    private boolean move(GrantState next) {
      if (Memory.getLongAcquire(region, GrantTable.TABLE_OFFSET) != PREPARING) {
        return false;
      }
      Memory.putLongRelease(region, GrantTable.TABLE_OFFSET, GrantWord.of(1, 0, next));
      return true;
    }
  }
}
