package io.orbitkv.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The SSD tier of the core against files that do what a test says. */
class SsdTierTest {
  private static final long EPOCH = 9;
  private static final int BLOCK = 65_536;
  private static final int PAGES_A_BLOCK = BLOCK / SsdPort.PAGE_BYTES;
  private static final int BLOCKS_A_SEGMENT = 16;
  private static final long SECOND = 1_000_000_000L;
  private static final long STARTS_AT = 500_000_000L;

  private final Map<Long, Long> arenaContent = new HashMap<>();
  private final Map<Integer, EngineModel> engines = new HashMap<>();
  private final SimulatedSsd disk = new SimulatedSsd(arenaContent);
  private CacheCore core;
  private long readFloor;
  private int revision;
  private long nowNs = 1;

  private final CoreOutput output =
      new CoreOutput() {
        @Override
        public void reply(int session, int ring, Command reply) {
          EngineModel engine = engines.get(session);
          Command copy = new Command();
          copy.set(
              reply.opcode,
              reply.status,
              reply.requestId,
              reply.epoch,
              reply.scalar0,
              reply.scalar1);
          engine.lastReply = copy.data(reply.dataOffset, reply.dataLength, reply.generation);
          if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
            engine.takePublishReply();
          }
        }

        @Override
        public ByteRing.Producer replyBytes(int session, int ring) {
          EngineModel engine = engines.get(session);
          return ring == ChannelDescriptor.QUERY_REPLIES
              ? engine.queryReplies
              : engine.publishReplies;
        }

        @Override
        public void wakeRestore(int session) {}

        @Override
        public void wakePublish(int session) {}

        @Override
        public void sessionSettled(int session) {}

        @Override
        public void unregistered(int session, int registrationId) {}

        @Override
        public void violation(int session, String what) {
          throw new AssertionError("violation by a well-behaved engine: " + what);
        }
      };

  private void start(int poolMiB, int segments, SsdConfig.WritePolicy policy, long daily) {
    Arena memory = Arena.ofAuto();
    engines.clear();
    int[] paths = new int[segments];
    for (int i = 0; i < segments; i++) {
      paths[i] = i % 2;
    }
    SsdConfig ssd =
        new SsdConfig(
            paths,
            2,
            SimulatedSsd.FIRST_PAGE,
            SimulatedSsd.FIRST_PAGE + BLOCKS_A_SEGMENT * PAGES_A_BLOCK,
            8,
            policy,
            daily,
            SECOND,
            readFloor,
            new long[] {STARTS_AT, STARTS_AT});
    long pool = (long) poolMiB << 20;
    core =
        new CacheCore(
            new CoreConfig(
                new long[] {pool},
                2 << 20,
                pool / 4 * 3,
                pool / 4 * 3,
                CoreConfig.DEFAULT_LEASE_AGE_NS,
                bytes -> memory.allocate(bytes, 64)),
            EPOCH,
            output,
            ssd,
            disk);
    disk.core = core;
  }

  private void start(int poolMiB, int segments) {
    start(poolMiB, segments, SsdConfig.WritePolicy.ALL, 0);
  }

  private EngineModel engine(int namespaceByte) {
    byte[] namespace = new byte[32];
    Arrays.fill(namespace, (byte) namespaceByte);
    int slot = core.reserveSlot();
    EngineModel engine =
        new EngineModel(
            core,
            slot,
            "engine-" + slot,
            namespace,
            List.of(new RegistrationRequest.Group(0, BLOCK, 4096)),
            EPOCH,
            arenaContent);
    engines.put(slot, engine);
    return engine;
  }

  private static List<Long> keys(long from, long count) {
    return LongStream.range(from, from + count).boxed().toList();
  }

  private void publish(EngineModel engine, List<Long> keys) {
    finish(engine, engine.publish(keys, -1, 0, nowNs));
  }

  private void finish(EngineModel engine, EngineModel.Op op) {
    for (int i = 0; i < 10 && !op.over; i++) {
      engine.step(op);
      core.pollGrants(engine.slot, nowNs);
    }
    assertThat(op.over).isTrue();
    engine.ops.remove(op);
  }

  /** Lets the tier do all that it wants, tables included. */
  private void settle() {
    disk.completeAll(nowNs);
    nowNs += 2 * SECOND;
    core.tick(nowNs);
    disk.completeAll(nowNs);
  }

  /** Fills DRAM with blocks that are used twice, so that the former ones are on SSD alone. */
  private void pushOut(EngineModel engine, long from, int blocks) {
    for (int i = 0; i < blocks; i += 16) {
      publish(engine, keys(from + i, 16));
      settle();
      restore(engine, keys(from + i, 16), from + i);
    }
  }

  /** Polls a lookup to its end and restores what it leased, bytes compared. */
  private int restore(EngineModel engine, List<Long> keys, long queryId) {
    for (int i = 0; i < 100; i++) {
      EngineModel.Held held = engine.lookup(keys, LookupRequest.PREFIX, queryId, 0, nowNs);
      if (engine.lastOutcome != LookupReply.LOADING) {
        if (held == null) {
          return 0;
        }
        finish(engine, engine.restore(held, 0, nowNs));
        return held.keys().size();
      }
      disk.completeAll(nowNs);
    }
    throw new AssertionError("loads for ever");
  }

  private SsdStats ssd() {
    return core.stats(nowNs).ssd();
  }

  private long misses(MissReason reason) {
    return core.stats(nowNs).missesTotal()[reason.code()];
  }

  @Test
  void shouldLoadBackWhatLeftDram() {
    start(4, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    settle();
    pushOut(engine, 1000, 64);

    assertThat(ssd().blocks()).isEqualTo(80);
    assertThat(core.stats(nowNs).residentBlocks()).isEqualTo(64);
    assertThat(engine.lookup(keys(0, 16), LookupRequest.CANDIDATES, nowNs).keys()).hasSize(16);
    assertThat(engine.lookup(keys(0, 16), LookupRequest.PREFIX, 1, 0, nowNs)).isNull();
    assertThat(engine.lastOutcome).isEqualTo(LookupReply.LOADING);

    assertThat(restore(engine, keys(0, 16), 1)).isEqualTo(16);
    assertThat(ssd().readBlocksTotal()).isEqualTo(16);
    assertThat(core.stats(nowNs).pinRefs()).isZero();
    assertThat(ssd().pinnedBytes()).isZero();
  }

  @Test
  void shouldNotShowABlockBeforeItsTableIsWritten() {
    start(4, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 1));
    disk.completeAll(nowNs); // segments are open, the block is written

    assertThat(disk.writes).isEqualTo(1);
    assertThat(disk.pending).isEmpty();
    assertThat(ssd().blocks()).isZero();
    nowNs += 2 * SECOND;
    core.ssdStep(nowNs);
    assertThat(disk.pending).hasSize(1);
    assertThat(ssd().blocks()).isZero();
    disk.complete(disk.pending.getFirst(), SsdPort.OK, nowNs);
    assertThat(ssd().blocks()).isEqualTo(1);
  }

  @Test
  void shouldJoinEqualLoads() {
    start(4, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 4));
    settle();
    pushOut(engine, 1000, 64);
    EngineModel other = engine(1);

    engine.lookup(keys(0, 4), LookupRequest.PREFIX, 1, 0, nowNs);
    other.lookup(keys(0, 4), LookupRequest.PREFIX, 1, 0, nowNs);
    assertThat(disk.pending).hasSize(4);
    assertThat(ssd().joinedLoadsTotal()).isEqualTo(4);
    assertThat(restore(engine, keys(0, 4), 1)).isEqualTo(4);
    assertThat(restore(other, keys(0, 4), 1)).isEqualTo(4);
    assertThat(ssd().readBlocksTotal()).isEqualTo(4);
  }

  @Test
  void shouldMissDamagedBlocksAndNeverServeThemAgain() {
    start(4, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 8));
    settle();
    pushOut(engine, 1000, 64);
    disk.damage(new SplittableRandom(1), 1);

    assertThat(restore(engine, keys(0, 8), 1)).isZero();
    assertThat(ssd().readFailuresTotal()[SsdPort.DAMAGED]).isEqualTo(8);
    assertThat(misses(MissReason.TIER)).isPositive();
    assertThat(core.stats(nowNs).unsealedBlocks()).isZero();
    engine.lookup(keys(0, 8), LookupRequest.PREFIX, 2, 0, nowNs);
    assertThat(engine.lastOutcome).isEqualTo(LookupReply.MISS);
    publish(engine, keys(0, 8));
    assertThat(restore(engine, keys(0, 8), 3)).isEqualTo(8);
  }

  @Test
  void shouldByPassAFileThatDoesNotAnswerAndKeepItsMemory() {
    start(4, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    settle();
    pushOut(engine, 1000, 64);
    engine.lookup(keys(0, 16), LookupRequest.PREFIX, 1, 0, nowNs);
    int reads = disk.pending.size();
    nowNs += 3 * SECOND;
    core.tick(nowNs);

    engine.lookup(keys(0, 16), LookupRequest.PREFIX, 1, 0, nowNs);
    assertThat(engine.lastOutcome).isEqualTo(LookupReply.MISS);
    assertThat(misses(MissReason.TIER)).isPositive();
    assertThat(ssd().retained()).isEqualTo(reads);
    assertThat(ssd().pinnedBytes()).isEqualTo((long) reads * BLOCK);
    publish(engine, keys(5000, 16)); // DRAM works on

    disk.completeAll(nowNs);
    core.tick(nowNs);
    assertThat(ssd().stalledPaths()).isZero();
    assertThat(ssd().retained()).isZero();
    assertThat(restore(engine, keys(0, 16), 2)).isEqualTo(16);
  }

  /**
   * Has 32 blocks looked up that are on SSD alone, half of which wait for the depth of the files.
   */
  private EngineModel loadMoreThanTheDepth() {
    start(8, 64);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 32));
    settle();
    pushOut(engine, 1000, 128);
    engine.lookup(keys(0, 32), LookupRequest.PREFIX, 1, 0, nowNs);
    assertThat(disk.pending).hasSize(16).allMatch(each -> each.isRead);
    assertThat(ssd().loads()).isEqualTo(32);
    return engine;
  }

  /** As when the control thread stood still, and tells one after the other what was done then. */
  @Test
  void shouldNotTakeAFileForStalledThatHasAnsweredAll() {
    EngineModel engine = loadMoreThanTheDepth();
    nowNs += 3 * SECOND;
    for (SimulatedSsd.Pending each : List.copyOf(disk.pending)) {
      disk.complete(each, SsdPort.OK, nowNs);
    }
    core.tick(nowNs);

    assertThat(ssd().stallsTotal()).isZero();
    assertThat(ssd().bypassedTotal()).isZero();
    assertThat(restore(engine, keys(0, 32), 1)).isEqualTo(32);
  }

  @Test
  void shouldGiveUpWhatWaitsForAStalledFileThatAnswersOthersMeanwhile() {
    loadMoreThanTheDepth();
    nowNs += 3 * SECOND;
    for (int path = 0; path < 2; path++) {
      int file = path;
      disk.complete(
          disk.pending.stream().filter(each -> each.segment % 2 == file).findFirst().orElseThrow(),
          SsdPort.OK,
          nowNs);
    }
    core.tick(nowNs);

    assertThat(ssd().stallsTotal()).isEqualTo(2);
    assertThat(ssd().bypassedTotal()).isEqualTo(16);
    assertThat(ssd().loads()).as("being read").isEqualTo(disk.pending.size());
  }

  /** Has a chain of 16 blocks looked up, each read of which takes a while. */
  private int load(EngineModel engine, long from, long readNs) {
    for (int i = 0; i < 40; i++) {
      EngineModel.Held held =
          engine.lookup(keys(from, 16), LookupRequest.PREFIX, from, ++revision, nowNs);
      if (engine.lastOutcome != LookupReply.LOADING) {
        int outcome = engine.lastOutcome;
        if (held != null) {
          finish(engine, engine.restore(held, 0, nowNs));
        }
        return outcome;
      }
      nowNs += readNs;
      disk.complete(disk.pending.getFirst(), SsdPort.OK, nowNs);
    }
    throw new AssertionError("loads for ever");
  }

  @Test
  void shouldByPassAFileThatIsSlowerThanTheFloorAndTryItAgain() {
    readFloor = 100_000_000L;
    start(8, 64);
    EngineModel engine = engine(1);
    for (int chain = 0; chain < 20; chain++) {
      publish(engine, keys(chain * 1000L, 16));
      settle();
    }
    pushOut(engine, 100_000, 128);

    long tenMegabytesASecond = BLOCK * 100L;
    assertThat(load(engine, 0, tenMegabytesASecond / 100)).isEqualTo(LookupReply.READY);
    assertThat(ssd().slowPaths()).isZero();
    long chain = 1;
    while (ssd().slowPaths() == 0) {
      load(engine, chain++ * 1000L, 3 * tenMegabytesASecond);
    }
    assertThat(Arrays.stream(ssd().readBytesPerSecond()).min().orElseThrow())
        .isBetween(100_000L, readFloor);
    long read = ssd().readBlocksTotal();
    load(engine, chain++ * 1000L, 1);
    assertThat(ssd().readBlocksTotal()).as("blocks behind the slow file").isLessThan(read + 16);
    assertThat(misses(MissReason.TIER)).isPositive();

    core.tick(nowNs);
    nowNs += 31 * SECOND;
    core.tick(nowNs);
    read = ssd().readBlocksTotal();
    assertThat(load(engine, chain * 1000L, 1)).isEqualTo(LookupReply.READY);
    assertThat(ssd().readBlocksTotal()).as("a trial").isEqualTo(read + 16);
  }

  @Test
  void shouldByPassAFileThatProvedSlowAtTheStart() {
    readFloor = STARTS_AT + 1;
    start(4, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    settle();
    pushOut(engine, 1000, 64);
    assertThat(ssd().slowPaths()).isEqualTo(2);
    assertThat(load(engine, 0, 1)).isEqualTo(LookupReply.MISS);
    assertThat(misses(MissReason.TIER)).isPositive();
  }

  @Test
  void shouldWriteOnReuseOnly() {
    start(4, 32, SsdConfig.WritePolicy.REUSE, 0);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    settle();
    assertThat(disk.writes).isZero();
    assertThat(restore(engine, keys(0, 4), 1)).isEqualTo(4);
    settle();
    assertThat(disk.writes).isEqualTo(4);
    assertThat(restore(engine, keys(0, 4), 2)).isEqualTo(4);
    settle();
    assertThat(disk.writes).isEqualTo(4);
  }

  @Test
  void shouldStopWritingWhenTheDaysBytesAreUsedUp() {
    start(4, 32, SsdConfig.WritePolicy.ALL, 10L * BLOCK);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    settle();
    assertThat(disk.writes).isEqualTo(10);
    assertThat(ssd().refusedTotal()[SsdRefusal.WRITE_BUDGET.code()]).isEqualTo(6);
    nowNs += 86_400 * SECOND;
    publish(engine, keys(100, 16));
    settle();
    assertThat(disk.writes).isEqualTo(20);
  }

  @Test
  void shouldReuseTheOldestSegmentsAndCountThem() {
    start(4, 4);
    EngineModel engine = engine(1);
    pushOut(engine, 0, 256);
    assertThat(ssd().blocks()).isLessThanOrEqualTo(4L * BLOCKS_A_SEGMENT);
    assertThat(ssd().usedBytes()).isEqualTo(ssd().blocks() * BLOCK);
    assertThat(ssd().evictedBlocksTotal()).isPositive();
    assertThat(restore(engine, keys(240, 16), 1)).isEqualTo(16);
    engine.lookup(keys(0, 16), LookupRequest.PREFIX, 2, 0, nowNs);
    assertThat(engine.lastOutcome).isEqualTo(LookupReply.MISS);
    assertThat(misses(MissReason.EVICTED)).isPositive();
  }

  @Test
  void shouldNotEmptyASegmentThatIsBeingRead() {
    start(8, 4);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 32));
    settle();
    pushOut(engine, 1000, 128); // more than what SSD holds, were it not for what comes next
    start(8, 4); // the same files under a new core
    engine = engine(1);
    disk.recover(core.ssdRecovery());
    List<Long> found = engine.lookup(keys(1096, 32), LookupRequest.CANDIDATES, nowNs).keys();
    assertThat(found).isNotEmpty();
    engine.lookup(found, LookupRequest.PREFIX, 1, 0, nowNs);
    List<SimulatedSsd.Pending> reads = new ArrayList<>(disk.pending);
    publish(engine, keys(9000, 64)); // wants room
    for (int i = 0; i < 200; i++) {
      core.ssdStep(nowNs);
      for (SimulatedSsd.Pending each : List.copyOf(disk.pending)) {
        if (!each.isRead) {
          disk.complete(each, SsdPort.OK, nowNs);
        }
      }
    }
    assertThat(reads).isNotEmpty();
    for (SimulatedSsd.Pending read : List.copyOf(disk.pending)) {
      disk.complete(read, SsdPort.OK, nowNs);
      assertThat(read.result).as("the block was overwritten while it was read").isZero();
    }
  }

  @Test
  void shouldFindTheBlocksOfWrittenTablesAfterARestart() {
    start(4, 32);
    EngineModel engine = engine(1);
    pushOut(engine, 0, 128);
    publish(engine, keys(500, 4)); // not on disk
    disk.kill(new SplittableRandom(2));

    start(4, 32);
    assertThat(disk.recover(core.ssdRecovery())).isEqualTo(128);
    assertThat(ssd().blocks()).isEqualTo(128);
    assertThat(ssd().lifetimeBytes()).isPositive();
    EngineModel again = engine(1);
    assertThat(restore(again, keys(16, 16), 1)).isEqualTo(16);
    EngineModel stranger = engine(2);
    assertThat(restore(stranger, keys(16, 16), 1)).isZero();
  }

  @Test
  void shouldEvictWhatSsdHasBeforeItsEquals() {
    start(4, 32);
    EngineModel engine = engine(1);
    List<Long> both = List.of(5L, 6L, 7L, 8L);
    both.forEach(key -> publish(engine, List.of(key)));
    settle();
    disk.kill(new SplittableRandom(1));
    start(4, 32, SsdConfig.WritePolicy.REUSE, 0);
    assertThat(disk.recover(core.ssdRecovery())).isEqualTo(both.size());
    EngineModel again = engine(1);
    keys(0, 64).forEach(key -> publish(again, List.of(key))); // the pool is full, each on its own
    publish(again, keys(100, 4));

    assertThat(disk.writes).isEqualTo(both.size());
    for (long key : keys(0, 64)) { // were another one gone, it would be nowhere
      List<Long> found = again.lookup(List.of(key), LookupRequest.CANDIDATES, nowNs).keys();
      assertThat(found).as("key=%s", key).hasSize(1);
    }
    assertThat(core.stats(nowNs).residentBlocks()).isEqualTo(64);
  }

  @Test
  void shouldFlushWhatIsResident() {
    start(4, 32, SsdConfig.WritePolicy.REUSE, 0);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 48));
    core.beginSsdFlush();
    disk.completeAll(nowNs);
    assertThat(core.isSsdFlushed()).isTrue();
    start(4, 32);
    assertThat(disk.recover(core.ssdRecovery())).isEqualTo(48);
  }

  @Test
  void shouldClearANamespaceFromEveryTierButNotLeasesInUse() {
    start(4, 32);
    EngineModel mine = engine(1);
    EngineModel other = engine(2);
    publish(mine, keys(0, 16));
    publish(other, keys(0, 16));
    settle();
    EngineModel.Held lease = mine.lookup(keys(0, 4), LookupRequest.PREFIX, nowNs);
    EngineModel.Op inFlight = mine.publish(keys(100, 4), -1, 0, nowNs);

    CacheCore.Cleared cleared = core.clear(mine.namespace, nowNs);
    assertThat(cleared.dramBlocks()).isEqualTo(16);
    assertThat(cleared.ssdBlocks()).isEqualTo(16);
    finish(mine, inFlight);
    assertThat(mine.table.stored(inFlight.slot)).isZero();
    assertThat(mine.table.status(inFlight.slot)).isEqualTo(Status.CANCELLED);
    settle();
    core.tick(nowNs);

    finish(mine, mine.restore(lease, 0, nowNs));
    core.tick(nowNs);
    core.tick(nowNs);
    assertThat(restore(mine, keys(0, 16), 1)).isZero();
    assertThat(misses(MissReason.CLEARED)).isPositive();
    assertThat(core.stats(nowNs).residentBlocks()).isEqualTo(16);
    assertThat(ssd().blocks()).isEqualTo(16);
    assertThat(restore(other, keys(0, 16), 1)).isEqualTo(16);

    publish(mine, keys(0, 4));
    settle();
    start(4, 32);
    disk.recover(core.ssdRecovery());
    assertThat(restore(engine(1), keys(0, 16), 1)).isEqualTo(4);
    assertThat(restore(engine(2), keys(0, 16), 1)).isEqualTo(16);
  }

  private Whereabouts explain(EngineModel engine, long key) {
    MemorySegment hash = MemorySegment.ofArray(new byte[32]);
    EngineModel.putHash(hash, 0, key);
    return core.explain(engine.namespace, hash.toArray(ValueLayout.JAVA_BYTE)).getFirst();
  }

  @Test
  void shouldExplainABlockFromItsPublishToSsd() {
    start(4, 32);
    EngineModel engine = engine(1);
    assertThat(explain(engine, 7).reason()).isEqualTo(MissReason.NEVER_STORED);
    EngineModel.Op inFlight = engine.publish(keys(7, 1), -1, 0, nowNs);
    assertThat(explain(engine, 7).isPublished()).isTrue();
    assertThat(explain(engine, 8).isPublished()).isFalse();
    finish(engine, inFlight);
    assertThat(explain(engine, 7).isPublished()).isFalse();
    assertThat(explain(engine, 7).inDram()).isTrue();
    assertThat(explain(engine, 7).onSsd()).isFalse();
    settle();
    assertThat(explain(engine, 7).onSsd()).isTrue();
  }

  private SimulatedSsd.Pending pendingClear() {
    return disk.pending.stream()
        .filter(each -> SsdRequest.kind(each.request) == SsdRequest.CLEAR)
        .findAny()
        .orElse(null);
  }

  @Test
  void shouldWriteAClearAgainUntilItIsOnDisk() {
    start(4, 32);
    EngineModel mine = engine(1);
    EngineModel other = engine(2);
    publish(mine, keys(0, 16));
    publish(other, keys(0, 16));
    settle();
    core.clear(mine.namespace, nowNs);
    core.clear(other.namespace, nowNs); // waits for the first
    for (int failures = 0; failures < 3; failures++) {
      disk.complete(pendingClear(), SsdPort.IO_ERROR, nowNs);
      assertThat(core.areClearsDurable()).isFalse();
      core.tick(nowNs);
      assertThat(pendingClear()).as("not at once").isNull();
      nowNs += 2 * SECOND;
      core.tick(nowNs);
    }
    assertThat(ssd().writeFailuresTotal()[SsdPort.IO_ERROR]).isEqualTo(3);
    assertThat(ssd().waitingClears()).isEqualTo(2);
    disk.complete(pendingClear(), SsdPort.OK, nowNs);
    disk.complete(pendingClear(), SsdPort.OK, nowNs);
    assertThat(core.areClearsDurable()).isTrue();
    disk.kill(new SplittableRandom(1));
    start(4, 32);
    assertThat(disk.recover(core.ssdRecovery())).isZero();
  }

  @Test
  void shouldRefuseFurtherClearsWhenTooManyWaitForTheDisk() {
    start(4, 32);
    EngineModel mine = engine(1);
    for (int i = 0; i < SsdClears.MAX_WAITING; i++) {
      core.clear(mine.namespace, nowNs);
    }
    assertThatThrownBy(() -> core.clear(mine.namespace, nowNs))
        .isInstanceOf(CoreException.class)
        .hasMessageContaining("SSD=64, which is the limit");
  }

  @Test
  void shouldGiveSegmentsAfterARestartNewerGenerationsThanEveryClear() {
    start(4, 8);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    core.ssdStep(nowNs);
    disk.complete(disk.pending.getFirst(), SsdPort.OK, nowNs); // opened, and no table written
    core.clear(engine.namespace, nowNs);
    disk.complete(pendingClear(), SsdPort.OK, nowNs);
    disk.kill(new SplittableRandom(1));
    start(4, 8);
    disk.recover(core.ssdRecovery());
    engine = engine(1);
    publish(engine, keys(100, 16));
    settle();
    disk.kill(new SplittableRandom(1));
    start(4, 8);
    assertThat(disk.recover(core.ssdRecovery())).as("published after the clear").isEqualTo(16);
  }

  @Test
  void shouldCountTheTableOfAnEmptySegmentUntilItIsOverwritten() {
    SsdSegments segments =
        new SsdSegments(
            new SsdConfig(new int[2], 1, 1, 1024, 8, SsdConfig.WritePolicy.ALL, 0, SECOND));
    segments.recovered(0, 3);
    segments.recovered(1, 9);
    assertThat(segments.tryEmpty(0)).isTrue();
    segments.emptied(0);
    assertThat(segments.oldestGeneration()).isEqualTo(3);
    assertThat(segments.beginOpen(0)).isZero();
    assertThat(segments.oldestGeneration()).isEqualTo(3);
    segments.blanked(0);
    assertThat(segments.oldestGeneration()).isEqualTo(9);
  }

  @Test
  void shouldServeTheOthersWhenSomeWritesFailed() {
    start(16, 64);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 200));
    int written = 0;
    int failed = 0;
    while (written < 200) {
      core.ssdStep(nowNs);
      SimulatedSsd.Pending next = disk.pending.getFirst();
      boolean isWrite = SsdRequest.kind(next.request) == SsdRequest.WRITE;
      boolean fails = isWrite && written % 10 == 5;
      written += isWrite ? 1 : 0;
      failed += fails ? 1 : 0;
      int result = failed % 2 == 0 ? SsdPort.IO_ERROR : SsdPort.NO_SPACE;
      disk.complete(next, fails ? result : SsdPort.OK, nowNs);
    }
    settle();
    assertThat(failed).isEqualTo(20);
    assertThat(ssd().writeFailuresTotal()[SsdPort.IO_ERROR]).isEqualTo(10);
    assertThat(ssd().writeFailuresTotal()[SsdPort.NO_SPACE]).isEqualTo(10);
    assertThat(ssd().blocks()).isEqualTo(180);
    assertThat(ssd().usedBytes()).isEqualTo(180L * BLOCK);

    disk.kill(new SplittableRandom(1)); // nothing is left in DRAM
    start(16, 64);
    assertThat(disk.recover(core.ssdRecovery())).isEqualTo(180);
    engine = engine(1);
    int served = 0;
    for (long key = 0; key < 200; key++) {
      served += restore(engine, keys(key, 1), key + 1); // bytes compared
    }
    assertThat(served).isEqualTo(180);
  }

  @Test
  void shouldSetAsideASegmentThatCanNotBeReadAndServeTheOthers() {
    start(8, 32);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 64));
    settle();
    pushOut(engine, 1000, 128);
    int bad = -1;
    for (long key = 0; key < 64; key++) {
      engine.lookup(keys(key, 1), LookupRequest.PREFIX, key + 1, 0, nowNs);
      for (SimulatedSsd.Pending each : List.copyOf(disk.pending)) {
        bad = bad < 0 ? each.segment : bad;
        disk.complete(each, each.segment == bad ? SsdPort.IO_ERROR : SsdPort.OK, nowNs);
      }
    }
    settle();
    assertThat(ssd().retiredSegments()).isEqualTo(1);
    assertThat(ssd().readFailuresTotal()[SsdPort.IO_ERROR]).isGreaterThanOrEqualTo(4);
    assertThat(ssd().usedBytes()).isEqualTo(ssd().blocks() * BLOCK);
    publish(engine, keys(5000, 16));
    pushOut(engine, 6000, 256);
    assertThat(restore(engine, keys(6240, 16), 1000)).isEqualTo(16);
    assertThat(ssd().retiredSegments()).isEqualTo(1);
  }

  @Test
  void shouldSetABadSegmentAsideAndGoOn() {
    start(4, 8);
    EngineModel engine = engine(1);
    publish(engine, keys(0, 16));
    int failed = 0;
    for (int i = 0; i < 1000; i++) {
      core.ssdStep(nowNs);
      if (disk.pending.isEmpty()) {
        break;
      }
      SimulatedSsd.Pending next = disk.pending.getFirst();
      boolean isWrite = SsdRequest.kind(next.request) == SsdRequest.WRITE;
      boolean fails = isWrite && failed < 4 && i % 2 == 0;
      failed += fails ? 1 : 0;
      disk.complete(next, fails ? SsdPort.IO_ERROR : SsdPort.OK, nowNs);
    }
    settle();
    pushOut(engine, 1000, 128);
    assertThat(ssd().writeFailuresTotal()[SsdPort.IO_ERROR]).isEqualTo(4);
    assertThat(restore(engine, keys(1112, 16), 1)).isEqualTo(16);
    assertThat(ssd().usedBytes()).isEqualTo(ssd().blocks() * BLOCK);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void shouldKeepItsAccountsUnderRandomFaultsAndRestarts(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    Set<Long> published = new HashSet<>();
    try {
      for (int life = 0; life < 4; life++) {
        start(4, 8, life % 2 == 0 ? SsdConfig.WritePolicy.ALL : SsdConfig.WritePolicy.REUSE, 0);
        disk.recover(core.ssdRecovery());
        liveOn(random, published);
        if (random.nextBoolean()) {
          disk.damage(random, 20);
        }
      }
    } catch (AssertionError | RuntimeException e) {
      throw new AssertionError("seed=" + seed + ": " + e.getMessage(), e);
    }
  }

  private void liveOn(SplittableRandom random, Set<Long> published) {
    EngineModel one = engine(1);
    EngineModel two = engine(1);
    for (int i = 0; i < 1500; i++) {
      EngineModel engine = random.nextBoolean() ? one : two;
      long chain = random.nextInt(16) * 1000L;
      switch (random.nextInt(10)) {
        case 0, 1 -> {
          List<Long> keys = keys(chain, 1 + random.nextInt(12));
          published.addAll(keys);
          publish(engine, keys);
        }
        case 2, 3 -> {
          long query = random.nextInt(3);
          EngineModel.Held held =
              engine.lookup(keys(chain, 12), LookupRequest.PREFIX, query, i, nowNs);
          if (held != null) {
            assertThat(published).containsAll(held.keys());
            finish(engine, engine.restore(held, 0, nowNs));
          }
        }
        case 4 -> {
          nowNs += random.nextInt(100) * 10_000_000L;
          core.tick(nowNs);
        }
        case 5 -> {
          if (random.nextInt(100) == 0 && core.areClearsDurable()) {
            core.clear(engine.namespace, nowNs);
          }
        }
        default -> {
          core.ssdStep(nowNs);
          completeSome(random);
        }
      }
      assertThat(ssd().usedBytes()).isEqualTo(ssd().blocks() * BLOCK);
    }
    if (random.nextBoolean()) {
      disk.kill(random);
      return;
    }
    settle();
    for (EngineModel engine : List.of(one, two)) {
      core.sessionLost(engine.slot, nowNs);
    }
    nowNs += 100 * SECOND;
    core.tick(nowNs);
    settle();
    CoreStats stats = core.stats(nowNs);
    assertThat(stats.pinRefs()).isZero();
    assertThat(stats.unsealedBlocks()).isZero();
    assertThat(stats.leaseBytes()).isZero();
    assertThat(stats.queriesPending()).isZero();
    assertThat(stats.ssd().pinnedBytes()).isZero();
    assertThat(stats.ssd().loads()).isZero();
    assertThat(stats.ssd().inFlight()).isZero();
    assertThat(stats.poolUsedBytes()).isEqualTo(stats.residentBytes());
    disk.kill(random);
  }

  private void completeSome(SplittableRandom random) {
    for (int n = random.nextInt(4); n > 0 && !disk.pending.isEmpty(); n--) {
      SimulatedSsd.Pending next = disk.pending.get(random.nextInt(disk.pending.size()));
      boolean fails = random.nextInt(30) == 0;
      disk.complete(next, fails ? 1 + random.nextInt(2) : SsdPort.OK, nowNs);
    }
  }
}
