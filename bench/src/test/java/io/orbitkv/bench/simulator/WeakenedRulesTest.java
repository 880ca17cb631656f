package io.orbitkv.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Status;
import io.orbitkv.core.CacheCore;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** The simulator with one rule of the real code weakened, which it must notice. */
class WeakenedRulesTest {
  private static final int SEEDS = 60;
  private static final int STEPS = 3_000;
  private static final int ENGINES = 3;
  private static final Variant.AfterCommand NOTHING = (_, _, _, _) -> {};

  private static void assertCaught(Variant weakened, Rule... rules) {
    SimulationResult result = new Simulation(1, SEEDS, STEPS, ENGINES).run(weakened);

    SimulationResult.Failure failure = result.failure();
    assertThat(failure).as("nothing was found").isNotNull();
    assertThat(failure.rule()).as(failure.detail()).isIn((Object[]) rules);
    assertThat(failure.shrunkSteps()).isLessThan(failure.steps()).isLessThan(100);
    assertThat(failure.schedule()).isNotEmpty();
    assertThat(result.toTable(1)).contains("again: orbitkv simulate --seeds " + failure.seed());
  }

  private static Variant manager(BiFunction<MemorySegment, Runnable, GrantTable> table) {
    return new Variant(table, GrantTable::open, true, NOTHING);
  }

  private static Variant engine(Function<MemorySegment, GrantTable> table) {
    return new Variant(WatchedTable::new, table, true, NOTHING);
  }

  private static void store(MemorySegment region, int slot, long word) {
    Memory.putLong(region, 512 + 192L * slot, word);
  }

  /** Takes a grant back without a look whether the engine has begun. */
  private static final class CarelessRevoke extends WatchedTable {
    CarelessRevoke(MemorySegment region, Runnable before) {
      super(region, before);
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      return super.tryManagerMove(slot, word, next, part) || next == GrantState.REVOKED;
    }
  }

  @Test
  void shouldCatchSourcesFreedWhileActive() {
    assertCaught(manager(CarelessRevoke::new), Rule.SOURCES);
  }

  /** Believes that each drained copy of one part was whole. */
  private static final class BelievesEveryDrain extends WatchedTable {
    BelievesEveryDrain(MemorySegment region, Runnable before) {
      super(region, before);
    }

    @Override
    public Status engineStatus(int slot) {
      return Status.OK;
    }

    @Override
    public int entriesDone(int slot) {
      return parts(slot) == 1 ? planEntries(slot) : super.entriesDone(slot);
    }
  }

  @Test
  void shouldCatchBlocksThatAreVisibleBeforeTheyAreWhole() {
    assertCaught(manager(BelievesEveryDrain::new), Rule.VISIBLE, Rule.BYTES, Rule.DEVICE);
  }

  /** Does not see that the engine has given up in Preparing. */
  private static final class BlindToCancel extends WatchedTable {
    BlindToCancel(MemorySegment region, Runnable before) {
      super(region, before);
    }

    @Override
    public long wordAcquire(int slot) {
      long word = super.wordAcquire(slot);
      return GrantWord.state(word) == GrantState.CANCEL_REQUESTED
          ? GrantWord.withState(word, GrantState.PREPARING)
          : word;
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      return GrantWord.state(super.wordAcquire(slot)) != GrantState.CANCEL_REQUESTED
          && super.tryManagerMove(slot, word, next, part);
    }
  }

  @Test
  void shouldCatchACancelThatIsNeverSeen() {
    assertCaught(manager(BlindToCancel::new), Rule.TERMINAL);
  }

  /** Goes Active by a store, where a compare-and-set would lose. */
  private static final class CarelessEngine extends GrantTable {
    CarelessEngine(MemorySegment region) {
      super(region);
    }

    @Override
    public boolean tryEngineMove(int slot, long word, GrantState next) {
      if (!super.tryEngineMove(slot, word, next) && next == GrantState.ACTIVE) {
        store(memory(), slot, GrantWord.withState(word, next));
      }
      return true;
    }
  }

  @Test
  void shouldCatchAnEngineThatDoesNotCompare() {
    assertCaught(
        engine(CarelessEngine::new),
        Rule.SOURCES,
        Rule.NEVER,
        Rule.PROTOCOL,
        Rule.TERMINAL,
        Rule.FAULTS);
  }

  @Test
  void shouldCatchALostWakeWithoutASecondLook() {
    assertCaught(new Variant(WatchedTable::new, GrantTable::open, false, NOTHING), Rule.TERMINAL);
  }

  private static Object field(Object of, String name) throws ReflectiveOperationException {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  /** Gives the pins of a lease back that have passed to a restore. */
  private static void giveBackTwice(CacheCore core, int session, int opcode, long operationId) {
    if (opcode != Opcode.RESTORE || !core.holdsGranted(session, operationId)) {
      return;
    }
    try {
      Object store = field(core, "store");
      Object of = ((Object[]) field(core, "sessions"))[session];
      Object op = ((Object[]) field(of, "operations"))[GrantWord.slotOf(operationId)];
      Method unpin = store.getClass().getDeclaredMethod("unpin", int.class);
      unpin.setAccessible(true);
      unpin.invoke(store, ((int[]) field(op, "rows"))[0]);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void shouldCatchALeaseThatIsGivenBackTwice() {
    assertCaught(
        new Variant(WatchedTable::new, GrantTable::open, true, WeakenedRulesTest::giveBackTwice),
        Rule.BALANCE,
        Rule.BYTES,
        Rule.FAULTS);
  }
}
