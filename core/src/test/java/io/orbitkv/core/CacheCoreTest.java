package io.orbitkv.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CacheCoreTest {
  private static final long EPOCH = 5;
  private static final int SLAB = 2 << 20;

  private final Map<Long, Long> arenaContent = new HashMap<>();
  private final Map<Integer, EngineModel> engines = new HashMap<>();
  private final List<String> events = new ArrayList<>();
  private CacheCore core;
  private boolean faulty;
  private boolean restoreWakesFail;

  private final CoreOutput output =
      new CoreOutput() {
        @Override
        public void reply(int session, int ring, Command reply) {
          EngineModel engine = engines.get(session);
          engine.lastReply =
              new Command()
                  .set(
                      reply.opcode,
                      reply.status,
                      reply.requestId,
                      reply.epoch,
                      reply.scalar0,
                      reply.scalar1)
                  .data(reply.dataOffset, reply.dataLength, reply.generation);
          if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
            engine.takePublishReply();
          }
        }

        @Override
        public ByteRing.Producer replyBytes(int session, int ring) {
          if (ring == ChannelDescriptor.PUBLISH_REPLIES && faulty) {
            throw new IllegalStateException("a fault of the edge");
          }
          EngineModel engine = engines.get(session);
          return ring == ChannelDescriptor.QUERY_REPLIES
              ? engine.queryReplies
              : engine.publishReplies;
        }

        @Override
        public void wakeRestore(int session) {
          if (restoreWakesFail) {
            throw new IllegalStateException("a fault of the edge");
          }
          events.add("wakeRestore " + session);
        }

        @Override
        public void wakePublish(int session) {
          events.add("wakePublish " + session);
        }

        @Override
        public void sessionSettled(int session) {
          events.add("settled " + session);
        }

        @Override
        public void unregistered(int session, int registrationId) {
          events.add("unregistered " + session);
        }

        @Override
        public void violation(int session, String what) {
          events.add("violation " + session + ": " + what);
        }
      };

  private void start(long poolBytes, long budgetBytes) {
    start(poolBytes, budgetBytes, CoreConfig.DEFAULT_PART_ENTRIES);
  }

  private void start(long poolBytes, long budgetBytes, int partEntries) {
    Arena memory = Arena.ofAuto();
    core =
        new CacheCore(
            new CoreConfig(
                new long[] {poolBytes},
                SLAB,
                budgetBytes,
                budgetBytes,
                CoreConfig.DEFAULT_LEASE_AGE_NS,
                partEntries,
                bytes -> memory.allocate(bytes, 64)),
            EPOCH,
            output);
  }

  private EngineModel engine(String instance, int namespaceByte, int blockBytes) {
    return engine(instance, namespaceByte, blockBytes, true, true);
  }

  private EngineModel engine(
      String instance, int namespaceByte, int blockBytes, boolean isObserved, boolean exitProves) {
    byte[] namespace = new byte[32];
    namespace[31] = (byte) namespaceByte;
    int slot = core.reserveSlot();
    EngineModel engine =
        new EngineModel(
            core,
            slot,
            instance,
            namespace,
            List.of(new RegistrationRequest.Group(0, blockBytes, 65_536)),
            EPOCH,
            arenaContent,
            isObserved,
            exitProves);
    engines.put(slot, engine);
    return engine;
  }

  private static List<Long> keys(long from, long count) {
    return LongStream.range(from, from + count).boxed().toList();
  }

  /** Publishes to the end; returns the operation. */
  private EngineModel.Op publish(EngineModel engine, List<Long> keys, long parent, int position) {
    EngineModel.Op op = engine.publish(keys, parent, position, 0);
    finish(engine, op);
    return op;
  }

  private void finish(EngineModel engine, EngineModel.Op op) {
    for (int i = 0; i < 40 && !op.over; i++) {
      engine.step(op);
      core.pollGrants(engine.slot, 0);
    }
    assertThat(op.over).isTrue();
  }

  @Test
  void shouldRestoreWhatWasPublished() {
    start(8 << 20, 8 << 20);
    EngineModel worker = engine("a", 1, 65_536);
    publish(worker, keys(0, 10), -1, 0);
    assertThat(worker.table.stored(0)).isEqualTo(10);

    EngineModel.Held lease = worker.lookup(keys(0, 12), LookupRequest.PREFIX, 0);
    assertThat(lease.keys()).isEqualTo(keys(0, 10));
    EngineModel.Op restore = worker.restore(lease, 3, 0);
    finish(worker, restore);

    CoreStats stats = core.stats(0);
    assertThat(stats.restoredBytesTotal()).isEqualTo(7 * 65_536);
    assertThat(stats.pinRefs()).isZero();
    assertThat(stats.missesTotal()[MissReason.NEVER_STORED.code()]).isEqualTo(1);
  }

  @Test
  void shouldCountWhatEachSessionRestoredAndPublished() {
    start(8 << 20, 8 << 20, 16); // parts of 16 blocks
    EngineModel scheduler = engine("a", 1, 65_536);
    EngineModel worker = engine("a", 1, 65_536);
    EngineModel other = engine("b", 1, 65_536);
    publish(worker, keys(0, 40), -1, 0);
    publish(other, keys(0, 42), -1, 0); // forty of them are held
    EngineModel.Held lease = scheduler.lookup(keys(0, 42), LookupRequest.PREFIX, 0);
    finish(worker, worker.restore(lease, 5, 0));

    EngineModel.Held unused = scheduler.lookup(keys(0, 42), LookupRequest.PREFIX, 0);
    EngineModel.Op cancelled = worker.restore(unused, 0, 0);
    worker.cancel(cancelled);
    core.pollGrants(worker.slot, 0);

    CoreStats stats = core.stats(0);
    assertThat(stats.failedTotal()).isEqualTo(1);
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::client)
        .containsExactly("client 0", "client 1", "client 2");
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::lookupBlocksTotal)
        .containsExactly(84L, 0L, 0L);
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::hitBlocksTotal)
        .containsExactly(84L, 0L, 0L);
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::restoredBlocksTotal)
        .containsExactly(0L, 37L, 0L);
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::restoredBytesTotal)
        .containsExactly(0L, 37 * 65_536L, 0L);
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::publishedBlocksTotal)
        .containsExactly(0L, 40L, 2L);
    assertThat(stats.perSession())
        .extracting(CoreStats.Session::publishedBytesTotal)
        .containsExactly(0L, 40 * 65_536L, 2 * 65_536L);
  }

  @Test
  void shouldCountNoLookupForAHint() {
    start(8 << 20, 8 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    CoreStats before = core.stats(0);
    engine.lookup(keys(0, 6), LookupRequest.CANDIDATES, 0);
    CoreStats hinted = core.stats(0);
    assertThat(hinted.lookupsTotal()).isEqualTo(before.lookupsTotal());
    assertThat(hinted.lookupBlocksTotal()).isEqualTo(before.lookupBlocksTotal());
    assertThat(hinted.hitBlocksTotal()).isEqualTo(before.hitBlocksTotal());
    assertThat(hinted.missesTotal()).isEqualTo(before.missesTotal());
    engine.lookup(keys(0, 6), LookupRequest.ALL, 0);
    CoreStats asked = core.stats(0);
    assertThat(asked.lookupsTotal()).isEqualTo(before.lookupsTotal() + 1);
    assertThat(asked.hitBlocksTotal()).isEqualTo(before.hitBlocksTotal() + 4);
  }

  @Test
  void shouldReportHeldBlocksAndKeepTheFirstBytes() {
    start(8 << 20, 8 << 20);
    EngineModel first = engine("a", 1, 65_536);
    EngineModel second = engine("b", 1, 65_536);
    EngineModel.Op one = first.publish(keys(0, 4), -1, 0, 0);
    EngineModel.Op two =
        second.publish(keys(0, 4), -1, 0, 0); // nothing is sealed yet: both allocate
    finish(first, one);
    finish(second, two);
    assertThat(first.table.stored(0)).isEqualTo(4);
    assertThat(second.table.stored(0)).isZero();
    assertThat(second.table.held(0)).isEqualTo(4);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(4);
    assertThat(core.stats(0).poolUsedBytes()).isEqualTo(4 * 65_536);
  }

  @Test
  void shouldRefuseWithCountsWhenEverythingIsPinnedAndStoreAgainAfterRelease() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 64), -1, 0);
    EngineModel.Held all = engine.lookup(keys(0, 64), LookupRequest.ALL, 0);
    publish(engine, keys(100, 10), -1, 0);
    assertThat(engine.table.status(0)).isEqualTo(Status.POOL_FULL);
    assertThat(engine.table.refused(0)).isEqualTo(10);
    assertThat(engine.release(all.id(), 0)).isEqualTo(Status.OK);
    assertThat(engine.release(all.id(), 0)).isEqualTo(Status.LEASE_ENDED);
    publish(engine, keys(100, 10), -1, 0);
    assertThat(engine.table.stored(0)).isEqualTo(10);
  }

  /** All but one chain is leased: the chain must not lose its head to its own next blocks. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void shouldRefuseBlocksRatherThanEvictWhatTheyContinue(boolean byParent) {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 32), -1, 0);
    publish(engine, keys(100, 32), -1, 0);
    EngineModel.Held rest = engine.lookup(keys(100, 32), LookupRequest.ALL, 0);
    if (byParent) {
      publish(engine, keys(32, 8), 31, 32);
    } else {
      publish(engine, keys(0, 40), -1, 0);
    }
    assertThat(engine.table.status(0)).isEqualTo(Status.POOL_FULL);
    assertThat(engine.table.refused(0)).isEqualTo(8);
    assertThat(prefix(engine, keys(0, 40))).isEqualTo(32);
    assertThat(engine.release(rest.id(), 0)).isEqualTo(Status.OK);
    publish(engine, keys(32, 8), 31, 32);
    assertThat(prefix(engine, keys(0, 40))).isEqualTo(40);
    assertThat(core.stats(0).pinRefs()).isZero();
    core.requireBalanced();
  }

  @Test
  void shouldEvictTailsBeforeHeads() {
    int chains = 64;
    int length = 16;
    start(32L << 20, 32L << 20); // half of what is published
    EngineModel engine = engine("a", 1, 65_536);
    for (int round = 0; round < 2; round++) { // chains grow in turns, as conversations do
      for (int c = 0; c < chains; c++) {
        publish(engine, keys(1000L * c, (round + 1) * length / 2), -1, 0);
      }
    }
    int prefixBlocks = 0;
    for (int c = 0; c < chains; c++) {
      prefixBlocks += prefix(engine, keys(1000L * c, length));
    }
    assertThat(core.stats(0).residentBlocks()).isEqualTo(512);
    assertThat(prefixBlocks).isGreaterThanOrEqualTo(512 * 95 / 100);
  }

  private int prefix(EngineModel engine, List<Long> keys) {
    EngineModel.Held held = engine.lookup(keys, LookupRequest.PREFIX, 0);
    if (held == null) {
      return 0;
    }
    engine.release(held.id(), 0);
    return held.keys().size();
  }

  @Test
  void shouldLetEveryBlockSizeUseThePool() {
    start(32L << 20, 32L << 20);
    int[] sizes = {16 << 10, 72 << 10, 1 << 20};
    for (int round = 0; round < 2; round++) {
      for (int size : sizes) {
        EngineModel engine = engine("a" + round + size, size >> 10, size);
        int blocks = (32 << 20) / size;
        for (int i = 0; i < blocks; i += 8) {
          publish(engine, keys(round * 100_000L + i, Math.min(8, blocks - i)), -1, 0);
        }
        EngineModel.Held held = engine.lookup(keys(round * 100_000L, blocks), LookupRequest.ALL, 0);
        assertThat((long) held.keys().size() * size)
            .as("size %d", size)
            .isGreaterThan((32L << 20) * 9 / 10);
        engine.release(held.id(), 0);
      }
    }
  }

  @Test
  void shouldSayWhyABlockIsMissing() {
    start(4 << 20, 1 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel other = engine("b", 2, 65_536);
    publish(other, keys(500, 1), -1, 0);
    publish(engine, keys(0, 32), -1, 0);
    publish(engine, keys(100, 60), -1, 0); // evicts the tail of the first chain
    engine.lookup(keys(31, 1), LookupRequest.PREFIX, 0);
    engine.lookup(keys(500, 1), LookupRequest.PREFIX, 0);
    engine.lookup(keys(900, 1), LookupRequest.PREFIX, 0);
    EngineModel.Held held =
        engine.lookup(keys(100, 60), LookupRequest.PREFIX, 0); // budget: 16 blocks
    assertThat(held.keys()).hasSize(16);
    long[] misses = core.stats(0).missesTotal();
    assertThat(misses[MissReason.EVICTED.code()]).isEqualTo(1);
    assertThat(misses[MissReason.OTHER_NAMESPACE.code()]).isEqualTo(1);
    assertThat(misses[MissReason.NEVER_STORED.code()]).isEqualTo(1);
    assertThat(misses[MissReason.BUDGET.code()]).isEqualTo(44);
  }

  @Test
  void shouldLetAnotherSessionOfTheInstanceUseALease() {
    start(8 << 20, 8 << 20);
    EngineModel scheduler = engine("a", 1, 65_536);
    EngineModel worker = engine("a", 1, 65_536);
    EngineModel stranger = engine("b", 1, 65_536);
    publish(worker, keys(0, 4), -1, 0);
    EngineModel.Held lease = scheduler.lookup(keys(0, 4), LookupRequest.PREFIX, 0);
    EngineModel.Op refused = stranger.restore(lease, 0, 0);
    assertThat(stranger.state(refused)).isEqualTo(GrantState.REAPED);
    assertThat(stranger.table.status(refused.slot)).isEqualTo(Status.LEASE_ENDED);
    EngineModel.Op op = worker.restore(lease, 0, 0);
    core.processExited(scheduler.slot, 0); // the pins are the operation's now
    finish(worker, op);
    EngineModel.Op again = worker.restore(lease, 0, 0);
    assertThat(worker.table.status(again.slot)).isEqualTo(Status.LEASE_ENDED);
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  @Test
  void shouldRetainAnActiveRestoreUntilTheProcessHasEnded() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 64), -1, 0);
    EngineModel.Op op = engine.restore(engine.lookup(keys(0, 64), LookupRequest.ALL, 0), 0, 0);
    engine.step(op);
    assertThat(engine.state(op)).isEqualTo(GrantState.ACTIVE);
    core.sessionLost(engine.slot, 5);
    core.tick(Long.MAX_VALUE / 2);
    core.recheckGrants(engine.slot, 0);
    assertThat(core.stats(0).retainedBytes()).isEqualTo(4 << 20);
    assertThat(core.stats(12).retained())
        .containsExactly(
            new CoreStats.Retained(
                engine.slot,
                1000 + engine.slot,
                "a",
                op.slot,
                false,
                RetainedReason.PROCESS_LIVES,
                7,
                4 << 20));
    assertThat(core.stats(0).sessionsRetained()).isEqualTo(1);
    engine.step(op); // it still reads what it was granted
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).retainedOperations()).isZero();
    assertThat(core.stats(0).pinRefs()).isZero();
    assertThat(events).contains("settled " + engine.slot);
  }

  /** The engine writes the word of a reserved record over a granted one. */
  @Test
  void shouldNotClaimAgainWhatItHasGranted() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel.Op op = engine.publish(keys(0, 1), -1, 0, 0);
    io.orbitkv.channel.Memory.putLong(
        engine.table.memory(),
        512 + 192L * op.slot,
        GrantWord.of(op.generation, 0, GrantState.RESERVED));
    engine.sendStale(op, 0);
    assertThat(core.stats(0).staleCommandsTotal()).isEqualTo(1);
    assertThat(core.stats(0).unsealedBlocks()).isEqualTo(1);
    core.recheckGrants(engine.slot, 0);
    assertThat(core.stats(0).violationsTotal()).isEqualTo(1);
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).unsealedBlocks()).isZero();
    assertThat(events).contains("settled " + engine.slot);
  }

  @Test
  void shouldRefuseARestoreThatUsesALeaseTwice() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 1), -1, 0);
    EngineModel.Held lease = engine.lookup(keys(0, 1), LookupRequest.ALL, 0);
    EngineModel.Op twice = engine.restoreTwice(lease, 0);
    assertThat(engine.state(twice)).isEqualTo(GrantState.REAPED);
    assertThat(engine.table.status(twice.slot)).isEqualTo(Status.LEASE_ENDED);
    assertThat(core.stats(0).leases()).isEqualTo(1);
    assertThat(core.stats(0).pinRefs()).isEqualTo(1);
    engine.step(engine.restore(lease, 0, 0));
    assertThat(core.stats(0).leases()).isZero();
  }

  /** An Active restore of an engine that has exited, with one block stored by another. */
  private CoreStats.Retained retainedAfterExit(boolean isObserved, boolean exitProves) {
    start(4 << 20, 4 << 20);
    publish(engine("a", 1, 65_536), keys(0, 1), -1, 0);
    EngineModel engine = engine("b", 1, 65_536, isObserved, exitProves);
    engine.step(engine.restore(engine.lookup(keys(0, 1), LookupRequest.ALL, 0), 0, 0));
    if (isObserved) {
      core.processExited(engine.slot, 0);
    } else {
      core.sessionLost(engine.slot, 0);
    }
    assertThat(core.stats(0).pinRefs()).isEqualTo(1);
    assertThat(core.stats(0).retained()).hasSize(1);
    return core.stats(0).retained().getFirst();
  }

  @Test
  void shouldRetainWhatADeviceMayStillRead() {
    assertThat(retainedAfterExit(true, false).reason()).isEqualTo(RetainedReason.DEVICE);
  }

  @Test
  void shouldRetainWhatAProcessMayStillReadWhoseEndNobodySees() {
    assertThat(retainedAfterExit(false, false).reason()).isEqualTo(RetainedReason.NOT_OBSERVED);
  }

  @Test
  void shouldKeepForGoodWhatAFaultOfItsOwnLeavesInDoubt() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel.Op op = engine.publish(keys(0, 4), -1, 0, 0);
    engine.step(op);
    engine.step(op);
    engine.step(op);
    faulty = true;
    assertThatThrownBy(() -> core.pollGrants(engine.slot, 0))
        .hasMessage("operation of record=0, generation=1: a fault of the edge");
    faulty = false;
    CoreStats.Retained open = core.stats(0).retained().getFirst();
    assertThat(open.reason()).isEqualTo(RetainedReason.FAULT);
    assertThat(open.bytes()).isEqualTo(4 * 65_536);
    core.processExited(engine.slot, 3);
    core.recheckGrants(engine.slot, 5);
    CoreStats.Retained over = core.stats(10).retained().getFirst();
    assertThat(over.reason()).isEqualTo(RetainedReason.FAULT);
    assertThat(over.ageNs()).isEqualTo(7);
    assertThat(events).doesNotContain("settled " + engine.slot);
  }

  @Test
  void shouldSealAPublishThatDrainedBeforeItsSessionEnded() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel.Op op = engine.publish(keys(0, 4), -1, 0, 0);
    engine.step(op);
    engine.step(op);
    engine.step(op);
    assertThat(engine.state(op)).isEqualTo(GrantState.DRAINED);
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(4);
  }

  @Test
  void shouldCloseASessionThatMovesARecordOutsideTheTable() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel neighbour = engine("b", 1, 65_536);
    EngineModel.Op op = engine.publish(keys(0, 4), -1, 0, 0);
    io.orbitkv.channel.Memory.putLong(
        engine.table.memory(), 512 + 192L * op.slot, 0x1234_5678_9abcL);
    core.recheckGrants(engine.slot, 0);
    assertThat(events).anyMatch(e -> e.startsWith("violation " + engine.slot));
    assertThat(core.stats(0).retainedOperations()).isEqualTo(1); // granted counts as Active
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).poolUsedBytes()).isZero();
    publish(neighbour, keys(0, 4), -1, 0);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(4);
  }

  @Test
  void shouldRevokeAtUnregisterWhatWasNotBegun() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel.Op granted = engine.publish(keys(0, 4), -1, 0, 0);
    EngineModel.Op active = engine.publish(keys(10, 4), -1, 0, 0);
    engine.step(active);
    core.unregister(engine.slot, engine.registrationId, engine.generation, 0);
    assertThat(engine.table.status(granted.slot)).isEqualTo(Status.STALE_REGISTRATION);
    assertThat(events).doesNotContain("unregistered " + engine.slot);
    finish(engine, active);
    assertThat(events).contains("unregistered " + engine.slot);
    EngineModel.Op late = engine.publish(keys(20, 1), -1, 0, 0);
    assertThat(engine.table.status(late.slot)).isEqualTo(Status.STALE_REGISTRATION);
  }

  @Test
  void shouldEndWhatIsPendingAtStop() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel.Op granted = engine.publish(keys(0, 4), -1, 0, 0);
    EngineModel.Op active = engine.publish(keys(10, 4), -1, 0, 0);
    engine.step(active);
    core.beginStop(0);
    assertThat(engine.table.status(granted.slot)).isEqualTo(Status.STOPPING);
    assertThat(core.isQuiescent()).isFalse();
    finish(engine, active);
    assertThat(core.isQuiescent()).isTrue();
  }

  @Test
  void shouldEndLeasesByAgeAndByAsker() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel other = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    engine.lookup(keys(0, 4), LookupRequest.PREFIX, 0);
    core.tick(CoreConfig.DEFAULT_LEASE_AGE_NS - 1);
    assertThat(core.stats(0).leases()).isEqualTo(1);
    core.tick(CoreConfig.DEFAULT_LEASE_AGE_NS);
    assertThat(core.stats(0).leases()).isZero();
    other.lookup(keys(0, 4), LookupRequest.PREFIX, 0);
    core.sessionLost(other.slot, 0);
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  @Test
  void shouldRefuseASecondHolderOfAnInstanceAndRank() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    RegistrationRequest same =
        new RegistrationRequest(
            engine.namespace,
            32,
            engine.slot,
            0,
            0,
            List.of(new RegistrationRequest.Group(0, 65_536, 1)),
            false,
            true);
    assertThatThrownBy(() -> core.register(engine.slot, same, 0))
        .isInstanceOf(CoreException.class)
        .hasMessageContaining("pid=" + (1000 + engine.slot));
  }

  @Test
  void shouldRefuseABlockLargerThanASlab() {
    start(4 << 20, 4 << 20);
    assertThatThrownBy(() -> engine("a", 1, SLAB + 1))
        .isInstanceOf(CoreException.class)
        .hasMessageContaining("limit of this pool=" + SLAB);
  }

  @Test
  void shouldFindEveryKeyAmongManyAndNoOther() {
    start(64L << 20, 64L << 20);
    EngineModel engine = engine("a", 1, 512);
    for (int i = 0; i < 100_000; i += 1000) {
      publish(engine, keys(i, 1000), i == 0 ? -1 : i - 1, i);
    }
    for (int i = 0; i < 200_000; i += 10_000) {
      EngineModel.Held held = engine.lookup(keys(i, 10_000), LookupRequest.CANDIDATES, 0);
      assertThat(held.keys()).hasSize(i < 100_000 ? 10_000 : 0);
    }
    CoreStats stats = core.stats(0);
    assertThat(stats.metadataBytes() / stats.residentBlocks()).isLessThanOrEqualTo(96);
  }

  private EngineModel engineOfTwoGroups(String instance, int blockBytes0, int blockBytes1) {
    byte[] namespace = new byte[32];
    namespace[30] = 1;
    EngineModel engine =
        new EngineModel(
            core,
            core.reserveSlot(),
            instance,
            namespace,
            List.of(
                new RegistrationRequest.Group(0, blockBytes0, 65_536),
                new RegistrationRequest.Group(1, blockBytes1, 65_536)),
            EPOCH,
            arenaContent);
    engines.put(engine.slot, engine);
    return engine;
  }

  @Test
  void shouldMakeRoomForEveryGroupOfAPublish() {
    start(8 << 20, 8 << 20);
    EngineModel engine = engineOfTwoGroups("a", 65_536, 1 << 20);
    publish(engine, keys(0, 128), -1, 0); // the pool holds group 0 only
    EngineModel.Op op = engine.publishGroups(List.of(keys(1000, 4), keys(2000, 3)), 0);
    finish(engine, op);
    assertThat(engine.table.refused(op.slot)).isZero();
    assertThat(engine.table.stored(op.slot)).isEqualTo(7);
  }

  @Test
  void shouldNotEvictWhatTheSamePublishAllocates() {
    start(8 << 20, 8 << 20);
    EngineModel engine = engineOfTwoGroups("a", 65_536, 1 << 20);
    finish(engine, engine.publishGroups(List.of(keys(0, 96), keys(100, 2)), 0)); // 3 slabs and 1
    EngineModel.Op op = engine.publishGroups(List.of(keys(1000, 1), keys(2000, 9)), 0);
    finish(engine, op);
    CoreStats stats = core.stats(0);
    assertThat(stats.pinRefs()).isZero();
    assertThat(stats.poolUsedBytes()).isEqualTo(stats.residentBytes());
    assertThat(engine.table.stored(op.slot) + engine.table.refused(op.slot)).isEqualTo(10);
    publish(engine, keys(5000, 128), -1, 0);
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  @Test
  void shouldNotBelieveAGrantThatItDidNotGive() {
    start(64L << 20, 64L << 20, GrantTable.MAX_PLAN_ENTRIES);
    EngineModel engine = engine("a", 1, 512);
    EngineModel.Op first = engine.publish(keys(0, 20_000), -1, 0, 0);
    EngineModel.Op waiting = engine.publish(keys(50_000, 20_000), -1, 0, 0); // the bank is full
    assertThat(engine.state(waiting)).isEqualTo(GrantState.PREPARING);
    long granted = GrantWord.of(waiting.generation, 0, GrantState.GRANTED);
    io.orbitkv.channel.Memory.putLong(engine.table.memory(), 512 + 192L * waiting.slot, granted);
    core.sessionLost(engine.slot, 0);
    assertThat(events).anyMatch(e -> e.startsWith("violation " + engine.slot));
    assertThat(engine.state(first)).isNotNull();
    core.processExited(engine.slot, 0);
    CoreStats stats = core.stats(0);
    assertThat(stats.poolUsedBytes()).isZero();
    assertThat(stats.pinRefs()).isZero();
    assertThat(stats.sessionsRetained()).isZero();
  }

  @Test
  void shouldGrantTheNextWhenTheHeadOfTheQueueIsCancelled() {
    start(64L << 20, 64L << 20, GrantTable.MAX_PLAN_ENTRIES);
    EngineModel engine = engine("a", 1, 512);
    EngineModel.Op first = engine.publish(keys(0, 20_000), -1, 0, 0);
    EngineModel.Op large = engine.publish(keys(30_000, 20_000), -1, 0, 0);
    EngineModel.Op small = engine.publish(keys(60_000, 10), -1, 0, 0);
    assertThat(engine.state(small)).isEqualTo(GrantState.PREPARING); // the bank serves in order
    engine.cancel(large);
    core.recheckGrants(engine.slot, 0);
    assertThat(engine.state(small)).isEqualTo(GrantState.GRANTED);
    finish(engine, small);
    finish(engine, first);
    assertThat(core.stats(0).grantsActive()).isZero();
  }

  /** Steps an operation until it is in a state. */
  private void stepTo(EngineModel engine, EngineModel.Op op, GrantState state) {
    for (int i = 0; i < 40 && engine.state(op) != state; i++) {
      engine.step(op);
    }
    assertThat(engine.state(op)).isEqualTo(state);
  }

  private static int part(EngineModel engine, EngineModel.Op op) {
    return GrantWord.part(engine.table.wordAcquire(op.slot));
  }

  @Test
  void shouldGrantALargePublishPartByPartAndSealItWhole() {
    start(64L << 20, 64L << 20);
    EngineModel engine = engine("a", 1, 512);
    EngineModel.Op publish = engine.publish(keys(0, 20_000), -1, 0, 0);
    for (int part = 0; part < 3; part++) {
      assertThat(engine.state(publish)).isEqualTo(GrantState.GRANTED);
      assertThat(part(engine, publish)).isEqualTo(part);
      assertThat(core.stats(0).residentBlocks()).isZero();
      stepTo(engine, publish, part < 2 ? GrantState.PART_DRAINED : GrantState.DRAINED);
      core.pollGrants(engine.slot, 0);
    }
    assertThat(engine.state(publish)).isEqualTo(GrantState.REAPED);
    assertThat(engine.table.stored(publish.slot)).isEqualTo(20_000);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(20_000);
    finish(engine, publish);
    EngineModel.Held lease = engine.lookup(keys(0, 20_000), LookupRequest.ALL, 0);
    EngineModel.Op restore = engine.restore(lease, 0, 0); // its copy compares bytes and sums
    finish(engine, restore);
    assertThat(restore.entriesDone).isEqualTo(20_000);
    assertThat(core.stats(0).restoresTotal()).isEqualTo(1);
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  /** Three operations of three parts each, in a bank with room for two parts. */
  private List<EngineModel.Op> startThreeLargeOnes(EngineModel engine, long firstKey) {
    List<EngineModel.Op> ops = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      ops.add(engine.publish(keys(firstKey + 100_000L * i, 25_000), -1, 0, 0));
    }
    assertThat(ops)
        .extracting(engine::state)
        .containsExactly(GrantState.GRANTED, GrantState.GRANTED, GrantState.PREPARING);
    return ops;
  }

  private void finishTogether(EngineModel engine, List<EngineModel.Op> ops) {
    for (int i = 0; i < 100; i++) {
      for (EngineModel.Op op : ops) {
        engine.step(op);
      }
      core.pollGrants(engine.slot, 0);
    }
    assertThat(ops).allMatch(op -> op.over);
  }

  @Test
  void shouldServeAFullBankInOrderAndTakePartDrainedOnce() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    stepTo(engine, ops.get(0), GrantState.PART_DRAINED);
    for (int i = 0; i < 3; i++) { // the repetitions free nothing a second time
      engine.table.markDirty(ops.get(0).slot);
      core.pollGrants(engine.slot, 0);
      core.recheckGrants(engine.slot, 0);
    }
    assertThat(ops)
        .extracting(engine::state)
        .as("the one that waited longer was served")
        .containsExactly(GrantState.PART_DRAINED, GrantState.GRANTED, GrantState.GRANTED);
    stepTo(engine, ops.get(1), GrantState.PART_DRAINED);
    core.pollGrants(engine.slot, 0);
    assertThat(ops)
        .extracting(engine::state)
        .containsExactly(GrantState.GRANTED, GrantState.PART_DRAINED, GrantState.GRANTED);
    finishTogether(engine, ops);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(75_000);
    assertThat(core.stats(0).grantsActive()).isZero();
    startThreeLargeOnes(engine, 1_000_000); // the whole bank is free again
  }

  @Test
  void shouldTakeBackWhatNobodyTakesUpWhileOthersWaitForTheBank() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    core.tick(Pressure.REVOKE_AFTER_NS - 1);
    assertThat(ops)
        .extracting(engine::state)
        .containsExactly(GrantState.GRANTED, GrantState.GRANTED, GrantState.PREPARING);
    engine.lastReply = new Command();
    core.tick(Pressure.REVOKE_AFTER_NS);
    assertThat(ops)
        .extracting(engine::state)
        .as("one is enough for the one that waits")
        .containsExactly(GrantState.REAPED, GrantState.GRANTED, GrantState.GRANTED);
    int revoked = ops.getFirst().slot;
    assertThat(engine.table.status(revoked)).isEqualTo(Status.LIMIT);
    assertThat(engine.table.error(revoked))
        .isEqualTo("not begun for s=10 after the grant, and others wait for its plan space");
    assertThat(engine.table.refused(revoked)).isEqualTo(25_000);
    assertThat(engine.lastReply.opcode).as("its blocks are told").isEqualTo(Opcode.PUBLISH);
    assertThat(core.stats(0).revokedTotal()).isEqualTo(1);
    finish(engine, ops.get(1));
    finish(engine, ops.get(2));
    assertThat(core.stats(0).residentBlocks()).isEqualTo(50_000);
    assertThat(core.stats(0).poolUsedBytes()).isEqualTo(50_000L * 512);
  }

  @Test
  void shouldNotTakeBackWhatIsActiveHoweverLongOthersWait() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    stepTo(engine, ops.get(0), GrantState.ACTIVE);
    stepTo(engine, ops.get(1), GrantState.ACTIVE);
    core.tick(10 * Pressure.REVOKE_AFTER_NS);
    assertThat(ops)
        .extracting(engine::state)
        .containsExactly(GrantState.ACTIVE, GrantState.ACTIVE, GrantState.PREPARING);
    finishTogether(engine, ops);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(75_000);
    assertThat(core.stats(0).revokedTotal()).isZero();
  }

  @Test
  void shouldNotTakeBackWhatWaitsForACopyWhileTheBankMoves() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    stepTo(engine, ops.get(1), GrantState.PART_DRAINED);
    core.pollGrants(engine.slot, Pressure.REVOKE_AFTER_NS / 2); // the third has its room
    core.tick(Pressure.REVOKE_AFTER_NS);
    assertThat(ops)
        .extracting(engine::state)
        .containsExactly(GrantState.GRANTED, GrantState.PART_DRAINED, GrantState.GRANTED);
    core.tick(Pressure.REVOKE_AFTER_NS * 3 / 2);
    assertThat(ops)
        .extracting(engine::state)
        .as("now nothing has moved for long")
        .containsExactly(GrantState.REAPED, GrantState.GRANTED, GrantState.GRANTED);
  }

  @Test
  void shouldTakeBackAsMuchAsThePoolWantsAndNothingWithoutNeed() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel other = engine("b", 1, 65_536);
    EngineModel.Op first = engine.publish(keys(0, 32), -1, 0, 0);
    EngineModel.Op second = engine.publish(keys(100, 32), -1, 0, 0);
    long late = Pressure.REVOKE_AFTER_NS;
    core.tick(late);
    assertThat(engine.state(first)).as("nobody wants its room").isEqualTo(GrantState.GRANTED);

    publish(other, keys(200, 10), -1, 0);
    assertThat(other.table.status(0)).isEqualTo(Status.POOL_FULL);
    core.tick(late - 1);
    assertThat(engine.state(first)).as("not yet overdue").isEqualTo(GrantState.GRANTED);
    publish(other, keys(200, 10), -1, 0);
    core.tick(late);
    assertThat(engine.state(first)).isEqualTo(GrantState.REAPED);
    assertThat(engine.table.error(first.slot)).endsWith("others wait for its blocks");
    assertThat(engine.state(second)).as("the first was enough").isEqualTo(GrantState.GRANTED);
    core.tick(2 * late);
    assertThat(engine.state(second)).isEqualTo(GrantState.GRANTED);

    publish(other, keys(200, 10), -1, 0);
    assertThat(other.table.stored(0)).isEqualTo(10);
    finish(engine, second);
    assertThat(core.stats(0).residentBlocks()).isEqualTo(42);
    assertThat(core.stats(0).poolUsedBytes()).isEqualTo(42 * 65_536);
  }

  @Test
  void shouldTakeBackARestoreThatKeepsThePoolFromBlocks() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 64), -1, 0);
    EngineModel.Op op = engine.restore(engine.lookup(keys(0, 64), LookupRequest.ALL, 0), 0, 0);
    publish(engine, keys(100, 10), -1, 0);
    core.tick(Pressure.REVOKE_AFTER_NS);
    assertThat(engine.state(op)).isEqualTo(GrantState.REAPED);
    assertThat(engine.table.status(op.slot)).isEqualTo(Status.LIMIT);
    assertThat(core.stats(0).pinRefs()).isZero();
    publish(engine, keys(100, 10), -1, 0);
    assertThat(prefix(engine, keys(100, 10))).isEqualTo(10);
  }

  @Test
  void shouldDropTheBlockOfWhichAnEngineFoundOtherBytes() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 8), -1, 0);
    EngineModel.Held held = engine.lookup(keys(2, 2), LookupRequest.ALL, 0); // by another reader
    failRestore(engine, 3, 5);
    assertThat(prefix(engine, keys(0, 8))).isEqualTo(5);
    assertThat(core.stats(0).damagedTotal()).as("another holds key 3").isEqualTo(1);
    assertThat(engine.release(held.id(), 0)).isEqualTo(Status.OK);
    failRestore(engine, 3);
    assertThat(prefix(engine, keys(0, 8))).isEqualTo(3);
    assertThat(core.stats(0).damagedTotal()).isEqualTo(2);
    publish(engine, keys(0, 8), -1, 0);
    assertThat(prefix(engine, keys(0, 8))).isEqualTo(8);
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  /** Restores keys 0 to 5 at most, finding other sums for some of them. */
  private void failRestore(EngineModel engine, int... damaged) {
    int count = Math.min(6, prefix(engine, keys(0, 8)));
    EngineModel.Held lease = engine.lookup(keys(0, count), LookupRequest.ALL, 0);
    EngineModel.Op op = engine.restore(lease, 0, 0);
    stepTo(engine, op, GrantState.ACTIVE);
    engine.drainDamaged(op, damaged);
    core.pollGrants(engine.slot, 0);
    assertThat(engine.table.status(op.slot)).isEqualTo(Status.COPY_FAILED);
    engine.step(op);
  }

  /** One publish is between two parts when the restore that waited before it can not be granted. */
  @Test
  void shouldPutTheOperationInQuarantineThatTheFaultIsOf() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    publish(engine, keys(0, 10_000), -1, 0);
    EngineModel.Op one = engine.publish(keys(100_000, 25_000), -1, 0, 0);
    engine.publish(keys(200_000, 25_000), -1, 0, 0);
    EngineModel.Held lease = engine.lookup(keys(0, 10_000), LookupRequest.ALL, 0);
    EngineModel.Op restore = engine.restore(lease, 0, 0);
    assertThat(engine.state(restore)).isEqualTo(GrantState.PREPARING);
    stepTo(engine, one, GrantState.PART_DRAINED);
    restoreWakesFail = true;
    assertThatThrownBy(() -> core.pollGrants(engine.slot, 0))
        .hasMessageContaining("record=" + restore.slot)
        .hasMessageContaining("a fault of the edge");
    restoreWakesFail = false;
    assertThat(core.stats(0).retained())
        .singleElement()
        .satisfies(kept -> assertThat(kept.record()).isEqualTo(restore.slot));
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).retainedOperations()).isEqualTo(1);
    assertThat(core.stats(0).unsealedBlocks()).isZero();
  }

  @Test
  void shouldSealNothingOfAPublishThatIsCancelledBetweenItsParts() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    stepTo(engine, ops.get(0), GrantState.PART_DRAINED);
    core.pollGrants(engine.slot, 0);
    engine.cancel(ops.get(0));
    assertThat(engine.state(ops.get(0))).isEqualTo(GrantState.DRAINED);
    core.pollGrants(engine.slot, 0);
    assertThat(engine.state(ops.get(0))).isEqualTo(GrantState.REAPED);
    assertThat(engine.table.status(ops.get(0).slot)).isEqualTo(Status.CANCELLED);
    assertThat(core.stats(0).residentBlocks()).isZero();
    finish(engine, ops.get(1));
    finish(engine, ops.get(2));
    assertThat(core.stats(0).residentBlocks()).isEqualTo(50_000);
    assertThat(core.stats(0).poolUsedBytes()).isEqualTo(50_000L * 512);
  }

  @Test
  void shouldEndAnOperationBetweenItsPartsWithTheSession() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    stepTo(engine, ops.get(0), GrantState.PART_DRAINED);
    stepTo(engine, ops.get(1), GrantState.ACTIVE);
    core.pollGrants(engine.slot, 0);
    core.sessionLost(engine.slot, 0);
    assertThat(ops)
        .extracting(engine::state)
        .containsExactly(GrantState.REAPED, GrantState.ACTIVE, GrantState.REAPED);
    assertThat(core.stats(0).sessionsRetained()).isEqualTo(1);
    stepTo(engine, ops.get(1), GrantState.PART_DRAINED); // its accesses have ended
    core.pollGrants(engine.slot, 0);
    assertThat(engine.state(ops.get(1))).isEqualTo(GrantState.REAPED);
    assertThat(core.stats(0).sessionsRetained()).isZero();
    assertThat(core.stats(0).poolUsedBytes()).isZero();
  }

  @Test
  void shouldEndAnOperationBetweenItsPartsWithItsRegistration() {
    start(64L << 20, 64L << 20, 12_000);
    EngineModel engine = engine("a", 1, 512);
    List<EngineModel.Op> ops = startThreeLargeOnes(engine, 0);
    stepTo(engine, ops.get(0), GrantState.PART_DRAINED);
    core.pollGrants(engine.slot, 0);
    core.unregister(engine.slot, engine.registrationId, engine.generation, 0);
    assertThat(ops).extracting(engine::state).containsOnly(GrantState.REAPED);
    assertThat(engine.table.status(ops.get(0).slot)).isEqualTo(Status.STALE_REGISTRATION);
    assertThat(events).contains("unregistered " + engine.slot);
    assertThat(core.stats(0).poolUsedBytes()).isZero();
  }

  @Test
  void shouldNotSealAPublishOneOfWhosePartsWasNotWhole() {
    start(64L << 20, 64L << 20);
    EngineModel engine = engine("a", 1, 512);
    EngineModel.Op op = engine.publish(keys(0, 20_000), -1, 0, 0);
    stepTo(engine, op, GrantState.ACTIVE);
    engine.step(op); // copies
    op.entriesDone--;
    stepTo(engine, op, GrantState.PART_DRAINED);
    op.entriesDone++;
    core.pollGrants(engine.slot, 0);
    finish(engine, op);
    assertThat(engine.table.status(op.slot)).isEqualTo(Status.COPY_FAILED);
    assertThat(core.stats(0).residentBlocks()).isZero();
    assertThat(core.stats(0).poolUsedBytes()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {8192, 20_000}) // what the part has, what the operation has
  void shouldNotSealAPublishThatDrainsBeforeItsLastPart(int entriesDone) {
    start(64L << 20, 64L << 20);
    EngineModel engine = engine("a", 1, 512);
    EngineModel.Op op = engine.publish(keys(0, 20_000), -1, 0, 0);
    stepTo(engine, op, GrantState.ACTIVE);
    engine.table.setEngineResult(op.slot, Status.OK, entriesDone, 1, 1);
    long word = engine.table.wordAcquire(op.slot);
    assertThat(engine.table.tryEngineMove(op.slot, word, GrantState.DRAINED)).isTrue();
    core.recheckGrants(engine.slot, 0);
    assertThat(engine.table.status(op.slot)).isEqualTo(Status.COPY_FAILED);
    assertThat(core.stats(0).residentBlocks()).isZero();
  }

  @Test
  void shouldRetainWhatDrainsAPartThatWasTheLast() {
    start(8 << 20, 8 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    EngineModel.Op op = engine.publish(keys(0, 4), -1, 0, 0);
    stepTo(engine, op, GrantState.ACTIVE);
    long word = engine.table.wordAcquire(op.slot);
    assertThat(engine.table.tryEngineMove(op.slot, word, GrantState.PART_DRAINED)).isTrue();
    core.recheckGrants(engine.slot, 0);
    assertThat(events).anyMatch(e -> e.startsWith("violation " + engine.slot));
    assertThat(core.stats(0).retainedOperations()).isEqualTo(1);
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).sessionsRetained()).isZero();
    assertThat(core.stats(0).poolUsedBytes()).isZero();
  }

  @Test
  void shouldNeedLessMetadataForTheLargestCommandThanAnOperationMayHave() {
    assertThat(Operations.metadataBytes(Protocol.MAX_HASHES, Protocol.MAX_GROUPS))
        .isLessThanOrEqualTo(Operations.MAX_METADATA_BYTES);
  }

  @Test
  void shouldRefuseByItsMetadataBeforeALeaseIsConsumed() {
    start(64L << 20, 64L << 20);
    EngineModel engine = engine("a", 1, 512);
    publish(engine, keys(0, 65_000), -1, 0);
    EngineModel.Held lease = engine.lookup(keys(0, 65_000), LookupRequest.ALL, 0);
    int fitting = (int) (Session.MAX_METADATA_BYTES / Operations.metadataBytes(65_000, 1));
    List<EngineModel.Op> ops = new ArrayList<>();
    for (int i = 0; i < fitting; i++) {
      EngineModel.Held other = engine.lookup(keys(0, 65_000), LookupRequest.ALL, 0);
      ops.add(engine.restore(other, 0, 0));
    }
    EngineModel.Op refused = engine.restore(lease, 0, 0);
    assertThat(engine.state(refused)).isEqualTo(GrantState.REAPED);
    assertThat(engine.table.status(refused.slot)).isEqualTo(Status.LIMIT);
    assertThat(engine.table.error(refused.slot)).contains("limit=" + Session.MAX_METADATA_BYTES);
    assertThat(core.stats(0).leases()).isEqualTo(1);
    engine.cancel(ops.getFirst());
    core.recheckGrants(engine.slot, 0);
    EngineModel.Op taken = engine.restore(lease, 0, 0);
    assertThat(engine.state(taken)).isNotEqualTo(GrantState.REAPED);
    core.processExited(engine.slot, 0);
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  @Test
  void shouldTakeBackTheLeasesOfAnAnswerThatCannotBeDelivered() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    Command filler = new Command();
    while (engine.queryReplies.tryClaim(1 << 20) >= 0) {
      engine.queryReplies.commit(1 << 20, filler);
    }
    while (engine.queryReplies.tryClaim(64) >= 0) {
      engine.queryReplies.commit(64, filler);
    }
    assertThat(engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 1, 0)).isNull();
    assertThat(engine.lastReply.status).isEqualTo(Status.LIMIT.code());
    assertThat(core.stats(0).leases()).isZero();
    assertThat(core.stats(0).queriesPending()).isZero();
    assertThat(core.stats(0).pinRefs()).isZero();
  }

  @Test
  void shouldNotTakeQueryZeroForAllQueries() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    engine.lookup(keys(0, 4), LookupRequest.PREFIX, 0);
    assertThat(engine.cancelQuery(0, 0)).isEqualTo(Status.INVALID);
    assertThat(core.stats(0).leases()).isEqualTo(1);
  }

  @Test
  void shouldLetANewerRevisionReplaceTheOlder() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    EngineModel.Held older = engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 1, 0);
    EngineModel.Held newer = engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 2, 0);
    assertThat(engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 1, 0)).isNull();
    assertThat(engine.lastReply.status).isEqualTo(Status.SUPERSEDED.code());
    assertThat(engine.release(older.id(), 0)).isEqualTo(Status.LEASE_ENDED);
    assertThat(core.stats(0).queriesPending()).isEqualTo(1);
    assertThat(engine.release(newer.id(), 0)).isEqualTo(Status.OK);
    assertThat(core.stats(0).queriesPending()).isZero();
  }

  @Test
  void shouldForgetAQueryAtTheEndOfItsReplysLifetimeButNotItsLeases() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    EngineModel.Held lease = engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 1, 7);
    long end = 7 + Leases.REPLY_LIFETIME_NS;
    core.tick(end - 1);
    assertThat(core.stats(end).queriesPending()).isEqualTo(1);
    assertThat(engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 0, end - 1)).isNull();
    core.tick(end);
    assertThat(core.stats(end).queriesPending()).isZero();
    assertThat(core.stats(end).queriesExpiredTotal()).isEqualTo(1);
    EngineModel.Op op = engine.restore(lease, 0, end);
    finish(engine, op);
    assertThat(core.stats(end).restoresTotal()).isEqualTo(1);
    assertThat(core.stats(end).leases()).isZero();
  }

  @Test
  void shouldRememberAQueryFromItsLatestAnswer() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 1, 0);
    engine.lookup(keys(0, 4), LookupRequest.PREFIX, 9, 2, 100);
    core.tick(Leases.REPLY_LIFETIME_NS + 99);
    assertThat(core.stats(0).queriesPending()).isEqualTo(1);
    core.tick(Leases.REPLY_LIFETIME_NS + 100);
    assertThat(core.stats(0).queriesPending()).isZero();
  }

  @Test
  void shouldEndTheLeasesOfAForgottenQueryByCancelAndByANewerRevision() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 65_536);
    publish(engine, keys(0, 4), -1, 0);
    long end = Leases.REPLY_LIFETIME_NS;
    EngineModel.Held first = engine.lookup(keys(0, 4), LookupRequest.PREFIX, 1, 0, 0);
    EngineModel.Held second = engine.lookup(keys(0, 4), LookupRequest.PREFIX, 2, 0, 0);
    core.tick(end);
    assertThat(engine.cancelQuery(1, end)).isEqualTo(Status.OK);
    assertThat(engine.release(first.id(), end)).isEqualTo(Status.LEASE_ENDED);
    EngineModel.Held newer = engine.lookup(keys(0, 4), LookupRequest.PREFIX, 2, 1, end);
    assertThat(engine.release(second.id(), end)).isEqualTo(Status.LEASE_ENDED);
    assertThat(core.stats(end).queriesPending()).isEqualTo(1);
    assertThat(engine.release(newer.id(), end)).isEqualTo(Status.OK);
    assertThat(core.stats(end).queriesPending()).isZero();
    assertThat(core.stats(end).pinRefs()).isZero();
  }

  @Test
  void shouldTakeNewQueriesWhenTheOldOnesAreForgotten() {
    start(4 << 20, 4 << 20);
    EngineModel engine = engine("a", 1, 512);
    publish(engine, keys(0, 1), -1, 0);
    for (int query = 1; query <= Session.MAX_QUERIES; query++) {
      assertThat(engine.lookup(keys(0, 1), LookupRequest.PREFIX, query, 0, 0)).isNotNull();
    }
    assertThat(engine.lookup(keys(0, 1), LookupRequest.PREFIX, 999, 0, 0)).isNull();
    long end = Leases.REPLY_LIFETIME_NS;
    core.tick(end);
    assertThat(core.stats(end).queriesExpiredTotal()).isEqualTo(Session.MAX_QUERIES);
    assertThat(core.stats(end).leases()).isEqualTo(Session.MAX_QUERIES);
    assertThat(engine.lookup(keys(0, 1), LookupRequest.PREFIX, 999, 0, end)).isNotNull();
    core.processExited(engine.slot, end);
    assertThat(core.stats(end).queriesPending()).isZero();
    assertThat(core.stats(end).pinRefs()).isZero();
  }

  @Test
  void shouldBoundQueriesASessionAndInAll() {
    start(4 << 20, 4 << 20);
    List<EngineModel> sessions = new ArrayList<>();
    for (int i = 0; i < 9; i++) {
      sessions.add(engine("a" + i, 1, 512));
    }
    publish(sessions.getFirst(), keys(0, 1), -1, 0);
    int granted = 0;
    for (EngineModel session : sessions) {
      for (int query = 1; query <= Session.MAX_QUERIES + 1; query++) {
        granted += session.lookup(keys(0, 1), LookupRequest.PREFIX, query, 0, 0) == null ? 0 : 1;
      }
      assertThat(session.lastReply.status).isEqualTo(Status.LIMIT.code());
    }
    assertThat(granted).isEqualTo(Leases.MAX_QUERIES);
    core.processExited(sessions.getFirst().slot, 0);
    EngineModel last = sessions.getLast();
    assertThat(last.lookup(keys(0, 1), LookupRequest.PREFIX, 1, 0, 0)).isNotNull();
  }
}
