package io.orbitkv.client;

import static io.orbitkv.client.Scenario.Event.CLEAR;
import static io.orbitkv.client.Scenario.Event.COMMAND_LOST;
import static io.orbitkv.client.Scenario.Event.COMMAND_REPEATED;
import static io.orbitkv.client.Scenario.Event.DIRTY_BIT_LOST;
import static io.orbitkv.client.Scenario.Event.ENGINE_0_DIES;
import static io.orbitkv.client.Scenario.Event.ENGINE_1_DIES;
import static io.orbitkv.client.Scenario.Event.LEASE_ENDS;
import static io.orbitkv.client.Scenario.Event.MANAGER_DIES;
import static io.orbitkv.client.Scenario.Event.MANAGER_STOPS;
import static io.orbitkv.client.Scenario.Event.SOCKET_0_ENDS;
import static io.orbitkv.client.Scenario.Event.SOCKET_1_ENDS;
import static io.orbitkv.client.Scenario.Event.TIME_PASSES;
import static io.orbitkv.client.Scenario.Event.UNREGISTER;
import static io.orbitkv.client.Scenario.otherPublish;
import static io.orbitkv.client.Scenario.publish;
import static io.orbitkv.client.Scenario.publishOfRestored;
import static io.orbitkv.client.Scenario.restore;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Named.named;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.orbitkv.channel.GrantState;
import io.orbitkv.client.Scenario.Event;
import io.orbitkv.client.Scenario.Second;
import io.orbitkv.client.Scenario.Weakness;
import io.orbitkv.linux.Mapping;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The real grant code of both sides, in every interleaving of its accesses for small bounds; and
 * the same with one rule weakened, which must be noticed.
 */
class GrantExplorerTest {
  private static final int MAX_STATES = 3_000_000;
  private static final int WORLDS_A_MAPPING = 16;

  /** Operations of one part and of two. */
  private static final int ONE = 1;

  private static final int TWO = WorldManager.PART_BLOCKS + 1;

  /** Hands out fresh, zeroed memory, without an unmap for each world. */
  private static final class Memories implements AutoCloseable {
    private Mapping mapping;
    private int next = WORLDS_A_MAPPING;

    MemorySegment take() {
      if (next == WORLDS_A_MAPPING) {
        close();
        mapping = Mapping.anonymous(WORLDS_A_MAPPING * WorldMemory.BYTES, false);
        next = 0;
      }
      return mapping.segment().asSlice(next++ * WorldMemory.BYTES, WorldMemory.BYTES);
    }

    @Override
    public void close() {
      if (mapping != null) {
        mapping.close();
      }
    }
  }

  private static Explorer.Found explore(Scenario scenario, Set<String> reached) {
    try (Memories memories = new Memories()) {
      return new Explorer()
          .explore(
              choices -> new GrantWorld(scenario, memories.take(), choices, reached).run(),
              MAX_STATES);
    }
  }

  // ---- every rule kept ----

  private static Event[] ends() {
    return new Event[] {SOCKET_0_ENDS, ENGINE_0_DIES, MANAGER_DIES, MANAGER_STOPS};
  }

  private static Scenario oneRestore() {
    return Scenario.of(restore(0, TWO))
        .cancels()
        .rechecks()
        .may(ends())
        .may(UNREGISTER, COMMAND_REPEATED, COMMAND_LOST, DIRTY_BIT_LOST, LEASE_ENDS);
  }

  private static Scenario onePublish() {
    return Scenario.of(publish(0, TWO))
        .cancels()
        .may(ends())
        .may(UNREGISTER, COMMAND_REPEATED, COMMAND_LOST, CLEAR);
  }

  /** Both use one record, one after the other; commands may come late. */
  private static Scenario oneRecord(Scenario.Op first, Scenario.Op second) {
    return Scenario.of(first, second).oneRecord().cancels().may(COMMAND_REPEATED, COMMAND_LOST);
  }

  private static Scenario together(Scenario.Op first, Scenario.Op second) {
    return Scenario.of(first, second).second(Second.TOGETHER);
  }

  /** Session 1 has asked for the lease that session 0 uses. */
  private static Scenario worker() {
    return Scenario.of(restore(0, TWO))
        .second(Second.TOGETHER)
        .askedBySessionOne()
        .may(SOCKET_1_ENDS, ENGINE_1_DIES, LEASE_ENDS);
  }

  private static Scenario nextSession() {
    return Scenario.of(restore(0, TWO), restore(1, ONE))
        .second(Second.OTHER_PROCESS)
        .may(SOCKET_0_ENDS, ENGINE_0_DIES);
  }

  private static Scenario reconnect() {
    return Scenario.of(restore(0, TWO), restore(1, ONE))
        .second(Second.SAME_PROCESS)
        .may(SOCKET_0_ENDS);
  }

  private static Scenario restart(Scenario.Op first, Scenario.Op second) {
    return Scenario.of(first, second).second(Second.RESTART).may(MANAGER_DIES);
  }

  private static Scenario bank() {
    return Scenario.of(restore(0, TWO), publish(0, ONE)).fullBank();
  }

  private static Scenario registersAgain() {
    return Scenario.of(restore(0, ONE), publish(0, ONE)).registersAgain().may(UNREGISTER);
  }

  private static Arguments kept(String name, Scenario scenario, String... reached) {
    return arguments(named(name, scenario), List.of(reached));
  }

  static Stream<Arguments> scenarios() {
    return Stream.of(
        kept(
            "a restore",
            oneRestore(),
            "operation 0 OK",
            "operation 0 CANCELLED",
            "operation 0 SESSION_ENDED",
            "operation 0 STOPPING",
            "operation 0 STALE_REGISTRATION",
            "operation 0 LEASE_ENDED"),
        kept(
            "a publish",
            onePublish(),
            "operation 0 OK",
            "operation 0 CANCELLED",
            "operation 0 SESSION_ENDED",
            "operation 0 STOPPING",
            "operation 0 STALE_REGISTRATION"),
        kept(
            "one record, a restore first",
            oneRecord(restore(0, ONE), publish(0, ONE)),
            "operation 1 OK",
            "operation 1 CANCELLED"),
        kept(
            "one record, a publish first",
            oneRecord(publish(0, ONE), restore(0, ONE)),
            "operation 1 OK",
            "operation 1 CANCELLED"),
        kept(
            "two operations",
            Scenario.of(restore(0, ONE), publish(0, ONE)).may(ENGINE_0_DIES, MANAGER_DIES),
            "operation 0 OK",
            "operation 1 SESSION_ENDED"),
        kept("a lease of another session", worker(), "operation 0 OK", "operation 0 LEASE_ENDED"),
        kept(
            "two publishes of a key",
            together(publish(0, ONE), publish(1, ONE)).may(ENGINE_0_DIES, SOCKET_1_ENDS),
            "operation 0 OK",
            "operation 1 OK"),
        kept(
            "two sessions",
            together(restore(0, ONE), publish(1, ONE)).may(SOCKET_0_ENDS, ENGINE_1_DIES),
            "operation 0 SESSION_ENDED",
            "operation 1 OK"),
        kept("the slot's next session", nextSession(), "operation 1 OK"),
        kept("a process that connects again", reconnect(), "operation 1 OK"),
        kept(
            "a Manager that starts again",
            restart(restore(0, TWO), publishOfRestored(1, ONE)),
            "operation 0 OK",
            "operation 0 SESSION_ENDED",
            "operation 1 OK"),
        kept(
            "a Manager that starts again, two publishes",
            restart(publish(0, ONE), otherPublish(1, ONE)),
            "operation 0 SESSION_ENDED",
            "operation 1 OK"),
        kept("a full bank", bank(), "operation 0 OK", "operation 1 OK"),
        kept(
            "a full bank that nobody empties",
            bank().may(TIME_PASSES),
            "REVOKED",
            "operation 0 LIMIT",
            "operation 1 LIMIT",
            "operation 0 OK",
            "operation 1 OK"),
        kept(
            "a full bank, in trouble",
            Scenario.of(publish(0, ONE), otherPublish(0, ONE)).fullBank().may(SOCKET_0_ENDS),
            "operation 1 SESSION_ENDED"),
        kept(
            "a registration after another",
            registersAgain(),
            "operation 0 STALE_REGISTRATION",
            "operation 1 OK"),
        kept(
            "copies that outlive their process",
            Scenario.of(restore(0, TWO)).cancels().device().may(ends()),
            "retained DEVICE"),
        kept(
            "a publish that outlives its process",
            Scenario.of(publish(0, TWO)).device().may(ENGINE_0_DIES),
            "retained DEVICE"),
        kept(
            "a process that nobody can observe",
            Scenario.of(restore(0, TWO)).cancels().unobserved().may(ends()),
            "retained NOT_OBSERVED"));
  }

  @ParameterizedTest
  @MethodSource("scenarios")
  void shouldKeepTheRulesInEveryState(Scenario scenario, List<String> ends, TestReporter reporter) {
    Set<String> reached = new HashSet<>();
    Explorer.Found found = explore(scenario, reached);
    reporter.publishEntry(scenario.toString(), found.toString());
    assertThat(found.states()).isGreaterThan(50);
    assertThat(reached).containsAll(ends);
    assertThat(reached).contains(GrantState.ACTIVE.name(), GrantState.ACKNOWLEDGED.name());
  }

  static Stream<Arguments> largeScenarios() {
    return Stream.of(
        kept("a restore, two events", oneRestore().atMost(2), "REVOKED", "PART_DRAINED"),
        kept("a publish, two events", onePublish().atMost(2), "REVOKED", "PART_DRAINED"),
        kept(
            "two operations, cancels",
            Scenario.of(restore(0, ONE), publish(0, ONE)).cancels().may(SOCKET_0_ENDS),
            "operation 1 OK"),
        kept(
            "two publishes of a key, cancels",
            together(publish(0, ONE), publish(1, ONE)).cancels().may(SOCKET_0_ENDS),
            "operation 1 OK"),
        kept(
            "two sessions of two parts",
            together(restore(0, TWO), publish(1, TWO)).may(SOCKET_0_ENDS),
            "operation 1 OK"),
        kept("the slot's next session, cancels", nextSession().cancels(), "operation 1 OK"),
        kept("a process that connects again, cancels", reconnect().cancels(), "operation 1 OK"),
        kept(
            "a Manager that starts again, cancels",
            restart(restore(0, TWO), publishOfRestored(1, TWO)).cancels(),
            "operation 1 OK"),
        kept(
            "a full bank of two parts, in trouble",
            bank().may(SOCKET_0_ENDS, ENGINE_0_DIES, TIME_PASSES),
            "operation 1 OK"),
        kept(
            "a registration after another, cancels", registersAgain().cancels(), "operation 1 OK"));
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("largeScenarios")
  void shouldKeepTheRulesInEveryStateOfLargerBounds(
      Scenario scenario, List<String> ends, TestReporter reporter) {
    shouldKeepTheRulesInEveryState(scenario, ends, reporter);
  }

  // ---- one rule weakened ----

  private static Arguments weak(String rule, Scenario scenario, String what) {
    return arguments(named(rule, scenario), what);
  }

  private static GrantWorld.Tables storing(GrantState next) {
    return WeakTables.manager(
        (region, watcher) -> new WeakTables.StoringManager(region, watcher, next));
  }

  private static GrantWorld.Tables refusing(GrantState from) {
    return WeakTables.manager((region, watcher) ->
        new WeakTables.RefusingManager(region, watcher, from, GrantState.REAPED));
  }

  /** Nobody ends an operation between two parts. */
  private static GrantWorld.Tables noEndBetweenParts() {
    return new GrantWorld.Tables(
        refusing(GrantState.PART_DRAINED).manager(), WeakTables.KeepingEngine::new);
  }

  static Stream<Arguments> weakenedTables() {
    return Stream.of(
        weak(
            "a revoke compares",
            Scenario.of(restore(0, ONE)).may(UNREGISTER).tables(storing(GrantState.REVOKED)),
            "a block is not pinned while the engine may touch it"),
        weak(
            "a revoke for another compares",
            bank().may(TIME_PASSES).tables(storing(GrantState.REVOKED)),
            "a block is not pinned while the engine may touch it"),
        weak(
            "a grant compares",
            Scenario.of(publish(0, ONE)).cancels().tables(storing(GrantState.GRANTED)),
            "pages are free while Active"),
        weak(
            "a grant of the next part compares",
            Scenario.of(publish(0, TWO)).cancels().tables(storing(GrantState.GRANTED)),
            "pages are free while Active"),
        weak(
            "the engine compares before it is Active",
            Scenario.of(restore(0, ONE))
                .may(UNREGISTER)
                .tables(new GrantWorld.Tables(SteppedTable::new, WeakTables.StoringEngine::new)),
            "record of operation 0 is not given back"),
        weak(
            "the plan is read after the move to Active",
            Scenario.of(restore(0, ONE))
                .may(UNREGISTER)
                .tables(new GrantWorld.Tables(SteppedTable::new, WeakTables.LateEngine::new)),
            "a block is not pinned while the engine may touch it"),
        weak(
            "a claim compares the generation",
            oneRecord(publish(0, ONE), otherPublish(0, ONE))
                .tables(WeakTables.manager(WeakTables.BlindToGeneration::new)),
            "caller of operation 1 waits for ever"),
        weak(
            "a cancel is seen",
            Scenario.of(restore(0, ONE))
                .cancels()
                .tables(WeakTables.manager(WeakTables.BlindToCancel::new)),
            "record of operation 0 is not given back"),
        weak(
            "only a whole copy is sealed",
            Scenario.of(publish(0, ONE))
                .cancels()
                .tables(WeakTables.manager(WeakTables.BelievesEveryDrain::new)),
            "a visible block has another checksum"),
        weak(
            "only a whole operation is sealed",
            Scenario.of(publish(0, TWO))
                .tables(WeakTables.manager(WeakTables.ContentWithOnePart::new)),
            "a visible block has another checksum"),
        weak(
            "an Active record is reaped after exit",
            Scenario.of(restore(0, ONE)).may(ENGINE_0_DIES).tables(refusing(GrantState.ACTIVE)),
            "operations=1 are left"),
        weak(
            "a record between parts is reaped after exit",
            Scenario.of(publish(0, TWO))
                .may(ENGINE_0_DIES)
                .tables(refusing(GrantState.PART_DRAINED)),
            "operations=1 are left"),
        weak(
            "a record between parts is reaped at a stop",
            Scenario.of(restore(0, TWO))
                .may(MANAGER_STOPS)
                .tables(refusing(GrantState.PART_DRAINED)),
            "caller of operation 0 waits for ever"),
        weak(
            "somebody ends a record between parts of a lost session",
            Scenario.of(restore(0, TWO)).may(SOCKET_0_ENDS).tables(noEndBetweenParts()),
            "caller of operation 0 waits for ever"),
        weak(
            "somebody ends a record between parts of a withdrawn registration",
            Scenario.of(publish(0, TWO)).may(UNREGISTER).tables(noEndBetweenParts()),
            "caller of operation 0 waits for ever"),
        weak(
            "the engine ends a record between parts when the Manager is gone",
            Scenario.of(publish(0, TWO)).may(MANAGER_DIES).tables(noEndBetweenParts()),
            "caller of operation 0 waits for ever"));
  }

  static Stream<Arguments> weakenedWorlds() {
    return Stream.of(
        weak(
            "the end of a socket is no exit",
            onePublish().weak(Weakness.SOCKET_END_IS_EXIT),
            "may touch memory"),
        weak(
            "exit proves nothing for a device",
            Scenario.of(restore(0, ONE))
                .device()
                .may(ENGINE_0_DIES)
                .weak(Weakness.DEVICE_EXIT_IS_PROOF),
            "may touch memory"),
        weak(
            "a cancel waits for the drain",
            Scenario.of(restore(0, ONE)).cancels().weak(Weakness.CANCEL_ENDS_ACTIVE),
            "pages are free while Active"),
        weak(
            "the end of a session waits for the drain",
            Scenario.of(restore(0, ONE)).may(MANAGER_DIES).weak(Weakness.SESSION_END_ENDS_ACTIVE),
            "pages are free while Active"),
        weak(
            "the end of a session cancels",
            Scenario.of(restore(0, ONE)).may(MANAGER_DIES).weak(Weakness.ENGINE_IS_NOT_TOLD),
            "caller of operation 0 waits for ever"),
        weak(
            "the end of a session ends a drained publish",
            Scenario.of(publish(0, ONE)).may(MANAGER_DIES).weak(Weakness.ENGINE_IS_NOT_TOLD),
            "caller of operation 0 waits for ever"),
        weak(
            "pins pass from the lease to the grant",
            worker().weak(Weakness.PINS_STAY_WITH_THE_ASKER),
            "row unpinned twice"),
        weak(
            "a closed session is read on",
            Scenario.of(publish(0, ONE))
                .may(SOCKET_0_ENDS)
                .weak(Weakness.CLOSED_SESSION_IS_NOT_READ),
            "operations=1 are left"),
        weak(
            "a claim has a time bound",
            Scenario.of(restore(0, ONE)).may(COMMAND_LOST).weak(Weakness.CLAIM_HAS_NO_BOUND),
            "caller of operation 0 waits for ever"),
        weak(
            "unregister waits",
            Scenario.of(restore(0, ONE)).may(UNREGISTER).weak(Weakness.UNREGISTER_DOES_NOT_WAIT),
            "unregister returned while an operation may touch memory"),
        weak(
            "a worker waits for no record",
            bank().weak(Weakness.WORKER_WAITS_FOR_ITS_PART),
            "waits for ever"),
        weak(
            "claims of pages outlive the session",
            reconnect().weak(Weakness.CLAIMS_DIE_WITH_THE_SESSION),
            "two operations touch the same pages"),
        weak(
            "claims of pages outlive the Manager",
            restart(restore(0, ONE), publishOfRestored(1, ONE))
                .weak(Weakness.CLAIMS_DIE_WITH_THE_SESSION),
            "a publish that succeeded is not resident"),
        weak(
            "arenas are of one epoch",
            restart(publish(0, ONE), otherPublish(1, ONE)).weak(Weakness.OLD_ARENAS_ARE_ADOPTED),
            "a visible block"),
        weak(
            "a grant table is of one session",
            nextSession().weak(Weakness.TABLE_IS_GIVEN_ON),
            "operation 1"),
        weak(
            "records are read without their dirty bit",
            Scenario.of(restore(0, ONE)).may(DIRTY_BIT_LOST).weak(Weakness.NO_RECHECK),
            "record of operation 0 is not given back"));
  }

  @ParameterizedTest
  @MethodSource({"weakenedTables", "weakenedWorlds"})
  void shouldCatchItWhenTheRuleIsWeakened(Scenario scenario, String what) {
    Set<String> reached = new HashSet<>();
    assertThatThrownBy(() -> explore(scenario, reached))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining(what);
  }
}
