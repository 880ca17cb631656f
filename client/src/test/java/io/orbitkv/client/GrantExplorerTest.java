package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Status;
import io.orbitkv.linux.Mapping;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The real grant code of both sides, in every interleaving of its accesses for small bounds; and
 * the same with one rule weakened, which must be noticed.
 */
class GrantExplorerTest {
  private static final int MAX_STATES = 2_000_000;
  private static final int WORLDS_A_MAPPING = 32;

  /** Hands out fresh, zeroed memory, without an unmap for each world. */
  private static final class Memories implements AutoCloseable {
    private Mapping mapping;
    private int next = WORLDS_A_MAPPING;

    MemorySegment take() {
      if (next == WORLDS_A_MAPPING) {
        close();
        mapping = Mapping.anonymous(WORLDS_A_MAPPING * GrantWorld.BYTES, false);
        next = 0;
      }
      return mapping.segment().asSlice(next++ * GrantWorld.BYTES, GrantWorld.BYTES);
    }

    @Override
    public void close() {
      if (mapping != null) {
        mapping.close();
      }
    }
  }

  private static Explorer.Found explore(GrantWorld.Scenario scenario, GrantWorld.Tables tables) {
    try (Memories memories = new Memories()) {
      return new Explorer()
          .explore(
              choices -> new GrantWorld(scenario, tables, memories.take(), choices).run(),
              MAX_STATES);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "0, 1, true, ''",
    "1, 0, true, ''",
    "0, 17, true, ''",
    "17, 0, true, ''",
    "0, 17, true, manager dies",
    "17, 0, true, manager dies",
    "0, 17, true, engine dies",
    "17, 0, true, engine dies",
    "0, 17, true, socket ends",
    "17, 0, true, socket ends",
    "0, 17, true, unregister",
    "17, 0, true, unregister",
    "17, 0, true, stop",
    "1, 0, true, repeat",
    "0, 1, true, repeat",
    "1, 0, true, command lost",
    "0, 1, true, command lost",
    "17, 0, true, dirty bit lost",
    "0, 17, true, dirty bit lost"
  })
  void shouldKeepTheRulesInEveryStateOfOneOperation(
      int publishBlocks, int restoreBlocks, boolean cancel, String fault) {
    assertHolds(publishBlocks, restoreBlocks, cancel, fault);
  }

  @ParameterizedTest
  @CsvSource({"false, ''", "false, engine dies", "false, manager dies"})
  void shouldKeepTheRulesInEveryStateOfTwoOperations(boolean cancel, String fault) {
    assertHolds(1, 1, cancel, fault);
  }

  @Tag("long")
  @ParameterizedTest
  @CsvSource({"true, ''", "false, socket ends", "false, unregister"})
  void shouldKeepTheRulesInEveryStateOfTwoOperationsAtLength(boolean cancel, String fault) {
    assertHolds(1, 1, cancel, fault);
  }

  private static void assertHolds(
      int publishBlocks, int restoreBlocks, boolean cancel, String fault) {
    var scenario = new GrantWorld.Scenario(publishBlocks, restoreBlocks, cancel, fault);
    Explorer.Found found = explore(scenario, GrantWorld.Tables.real());
    assertThat(found.states()).as("%s", found).isGreaterThan(100);
  }

  private static void assertCaught(
      int publishBlocks, int restoreBlocks, String fault, GrantWorld.Tables weakened, String what) {
    var scenario = new GrantWorld.Scenario(publishBlocks, restoreBlocks, fault.isEmpty(), fault);
    assertThatThrownBy(() -> explore(scenario, weakened))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining(what);
  }

  private static GrantWorld.Tables weakManager(GrantWorld.TableMaker maker) {
    return new GrantWorld.Tables(maker, GrantTable::open, true);
  }

  /** Makes one kind of move by a store, where a compare-and-set would lose. */
  private static final class StoringManager extends SteppedTable {
    private final GrantState weak;

    StoringManager(MemorySegment region, Watcher watcher, GrantState weak) {
      super(region, watcher);
      this.weak = weak;
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      if (super.tryManagerMove(slot, word, next, part)) {
        return true;
      }
      if (next == weak) {
        store(memory(), slot, GrantWord.of(GrantWord.generation(word), part, next));
      }
      return next == weak;
    }
  }

  private static void store(MemorySegment region, int slot, long word) {
    Memory.putLong(region, 512 + 192L * slot, word);
  }

  @Test
  void shouldCatchARevokeThatDoesNotCompare() {
    assertCaught(
        0,
        1,
        "unregister",
        weakManager((region, watcher) -> new StoringManager(region, watcher, GrantState.REVOKED)),
        "owners are released while Active");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 17})
  void shouldCatchAGrantThatDoesNotCompare(int blocks) {
    assertCaught(
        blocks,
        0,
        "",
        weakManager((region, watcher) -> new StoringManager(region, watcher, GrantState.GRANTED)),
        "pages are free while Active");
  }

  /** Goes Active by a store, where a compare-and-set would lose. */
  private static final class StoringEngine extends GrantTable {
    StoringEngine(MemorySegment region) {
      super(region);
    }

    @Override
    public boolean tryEngineMove(int slot, long word, GrantState next) {
      if (super.tryEngineMove(slot, word, next)) {
        return true;
      }
      if (next == GrantState.ACTIVE) {
        store(memory(), slot, GrantWord.withState(word, next));
      }
      return next == GrantState.ACTIVE;
    }
  }

  @Test
  void shouldCatchAnEngineThatGoesActiveWithoutComparing() {
    assertCaught(
        0,
        1,
        "unregister",
        new GrantWorld.Tables(SteppedTable::new, StoringEngine::new, true),
        "record of operation 0 is not given back");
  }

  @Test
  void shouldCatchASocketEndTakenForTheEndOfTheProcess() {
    assertCaught(1, 0, "socket end taken for exit", GrantWorld.Tables.real(), "may touch memory");
  }

  @Test
  void shouldCatchAManagerThatTrustsTheDirtyBits() {
    assertCaught(
        0,
        1,
        "dirty bit lost",
        new GrantWorld.Tables(SteppedTable::new, GrantTable::open, false),
        "record of operation 0 is not given back");
  }

  /** Does not see that the engine has given up in Preparing. */
  private static final class BlindToCancel extends SteppedTable {
    BlindToCancel(MemorySegment region, Watcher watcher) {
      super(region, watcher);
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
    assertCaught(
        0, 1, "", weakManager(BlindToCancel::new), "record of operation 0 is not given back");
  }

  /** Reads no result of the engine: every part counts as whole. */
  private static final class BelievesEveryDrain extends SteppedTable {
    BelievesEveryDrain(MemorySegment region, Watcher watcher) {
      super(region, watcher);
    }

    @Override
    public Status engineStatus(int slot) {
      return Status.OK;
    }

    @Override
    public int entriesDone(int slot) {
      return planEntries(slot);
    }
  }

  @Test
  void shouldCatchASealOfACancelledCopy() {
    assertCaught(
        1, 0, "", weakManager(BelievesEveryDrain::new), "blocks are visible before they are whole");
  }
}
