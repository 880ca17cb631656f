package io.orbitkv.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.LookupRequest;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Random commands, cancels, deaths and time against the core, with the invariants checked after
 * each step. A failure names the seed; the same seed gives the same run.
 */
class CacheCorePropertyTest {
  private static final long EPOCH = 77;
  private static final int CHAINS = 12;
  private static final int CHAIN_LENGTH = 48;

  /** So small that most operations have several parts. */
  private static final int PART_ENTRIES = 16;

  private static final int[] BLOCK_BYTES = {16 << 10, 100_000, 1 << 20};

  private final Map<Long, Long> arenaContent = new HashMap<>();
  private final Map<Integer, EngineModel> engines = new HashMap<>();
  private final List<EngineModel> dead = new ArrayList<>();
  private final Map<Integer, List<EngineModel.Held>> leases = new HashMap<>();
  private final Set<Long> everPublished = new HashSet<>();
  private CacheCore core;
  private SplittableRandom random;
  private long nowNs;
  private int nextInstance;

  private final CoreOutput output =
      new CoreOutput() {
        @Override
        public void reply(int session, int ring, Command reply) {
          engines.get(session).lastReply = copyOf(reply);
          if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
            engines.get(session).takePublishReply();
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

  private static Command copyOf(Command from) {
    Command copy =
        new Command()
            .set(from.opcode, from.status, from.requestId, from.epoch, from.scalar0, from.scalar1);
    return copy.data(from.dataOffset, from.dataLength, from.generation);
  }

  @ParameterizedTest
  @CsvSource({"1,8", "2,8", "3,16", "4,16", "5,64", "6,8", "7,12", "8,24", "9,8", "10,12"})
  void shouldKeepInvariantsUnderRandomCommandsDeathsAndTime(long seed, int poolMiB) {
    run(seed, poolMiB);
  }

  private void run(long seed, int poolMiB) {
    random = new SplittableRandom(seed);
    long pool = (long) poolMiB << 20;
    Arena memory = Arena.ofAuto();
    core =
        new CacheCore(
            new CoreConfig(
                new long[] {pool / 2, pool / 2},
                2 << 20,
                pool * 3 / 4,
                pool / 2,
                1_000_000,
                PART_ENTRIES,
                bytes -> memory.allocate(bytes, 64)),
            EPOCH,
            output);
    try {
      for (int i = 0; i < 4000; i++) {
        step();
        checkInvariants();
      }
      windDown();
    } catch (AssertionError | RuntimeException e) {
      throw new AssertionError("seed=" + seed + ", poolMiB=" + poolMiB + ": " + e.getMessage(), e);
    }
  }

  private void step() {
    nowNs += random.nextInt(500) == 0 ? Leases.REPLY_LIFETIME_NS : random.nextInt(2000);
    int choice = random.nextInt(100);
    if (engines.isEmpty() || (choice < 1 && engines.size() < 6)) {
      open();
      return;
    }
    List<Integer> slots = new ArrayList<>(engines.keySet());
    slots.sort(null);
    EngineModel engine = engines.get(slots.get(random.nextInt(slots.size())));
    if (choice < 2 && random.nextInt(3) == 0) {
      die(engine);
    } else if (choice < 15) {
      publish(engine);
    } else if (choice < 25) {
      lookup(engine);
    } else if (choice < 35) {
      restore(engine);
    } else if (choice < 37) {
      release(engine);
    } else if (choice < 85) {
      stepSomeOp(engine);
    } else if (choice < 88) {
      cancelSomeOp(engine);
    } else if (choice < 97) {
      core.pollGrants(engine.slot, nowNs);
    } else if (choice < 98) {
      repeatSomeCommand(engine);
    } else {
      core.recheckGrants(engine.slot, nowNs);
      core.tick(nowNs);
    }
  }

  private void open() {
    int slot = core.reserveSlot();
    int kind = random.nextInt(BLOCK_BYTES.length);
    byte[] namespace = new byte[32];
    namespace[0] = (byte) (kind + 1);
    String instance = "engine-" + (nextInstance++ % 3);
    EngineModel engine =
        new EngineModel(
            core,
            slot,
            instance,
            namespace,
            List.of(new RegistrationRequest.Group(0, BLOCK_BYTES[kind], CHAIN_LENGTH)),
            EPOCH,
            arenaContent);
    engine.kind = kind;
    engines.put(slot, engine);
    leases.put(slot, new ArrayList<>());
  }

  private void die(EngineModel engine) {
    engines.remove(engine.slot);
    leases.remove(engine.slot);
    if (random.nextBoolean()) {
      core.processExited(engine.slot, nowNs);
    } else {
      core.sessionLost(engine.slot, nowNs);
      dead.add(engine); // the process lives on for a while: its copies run, its exit comes later
    }
  }

  private long key(EngineModel engine, int chain, int position) {
    return ((long) engine.kind << 32) + chain * 1000L + position;
  }

  private List<Long> chain(EngineModel engine, int chain, int from, int to) {
    List<Long> keys = new ArrayList<>();
    for (int i = from; i < to; i++) {
      keys.add(key(engine, chain, i));
    }
    return keys;
  }

  private long unsettledOps(EngineModel engine) {
    return engine.ops.stream().filter(op -> !op.over).count();
  }

  private void publish(EngineModel engine) {
    if (unsettledOps(engine) > 20) {
      return;
    }
    int chain = random.nextInt(CHAINS);
    int from = random.nextInt(CHAIN_LENGTH - 1);
    int to = from + 1 + random.nextInt(CHAIN_LENGTH - from);
    List<Long> keys = chain(engine, chain, from, to);
    everPublished.addAll(keys);
    engine.publish(keys, from == 0 ? -1 : key(engine, chain, from - 1), from, nowNs);
  }

  private void lookup(EngineModel engine) {
    int mode = random.nextInt(3);
    List<Long> keys = chain(engine, random.nextInt(CHAINS), 0, CHAIN_LENGTH);
    int query = random.nextInt(8); // 0 is none
    EngineModel.Held held = engine.lookup(keys, mode, query, random.nextInt(3), nowNs);
    if (held != null) {
      assertThat(everPublished).containsAll(held.keys());
      if (mode != LookupRequest.CANDIDATES) {
        leases.get(engine.slot).add(held);
      }
    }
  }

  private EngineModel.Held takeLease(EngineModel engine) {
    List<EngineModel.Held> held = leases.get(engine.slot);
    return held.isEmpty() ? null : held.remove(random.nextInt(held.size()));
  }

  private void restore(EngineModel engine) {
    EngineModel.Held lease = takeLease(engine);
    if (lease != null && unsettledOps(engine) <= 20) {
      engine.restore(lease, random.nextInt(lease.keys().size()), nowNs);
    }
  }

  private void release(EngineModel engine) {
    EngineModel.Held lease = takeLease(engine);
    if (lease != null) {
      engine.release(lease.id(), nowNs);
    }
  }

  private EngineModel.Op someOp(EngineModel engine) {
    List<EngineModel.Op> open = engine.ops.stream().filter(op -> !op.over).toList();
    return open.isEmpty() ? null : open.get(random.nextInt(open.size()));
  }

  private void stepSomeOp(EngineModel engine) {
    EngineModel of =
        dead.isEmpty() || random.nextInt(4) > 0 ? engine : dead.get(random.nextInt(dead.size()));
    EngineModel.Op op = someOp(of);
    if (op != null && of.state(op) != null) {
      for (int steps = random.nextInt(5); steps >= 0 && of.state(op) != null; steps--) {
        of.step(op);
      }
      of.ops.removeIf(o -> o.over);
    }
  }

  private void cancelSomeOp(EngineModel engine) {
    EngineModel.Op op = someOp(engine);
    if (op != null && engine.state(op) != null) {
      engine.cancel(op);
    }
  }

  private void repeatSomeCommand(EngineModel engine) {
    EngineModel.Op op = someOp(engine);
    if (op != null && engine.state(op) != GrantState.RESERVED) {
      long stale = core.stats(nowNs).staleCommandsTotal();
      engine.sendStale(op, nowNs);
      assertThat(core.stats(nowNs).staleCommandsTotal()).isEqualTo(op.publish ? stale + 1 : stale);
    }
  }

  private void checkInvariants() {
    CoreStats stats = core.stats(nowNs);
    assertThat(stats.poolUsedBytes()).isLessThanOrEqualTo(stats.poolCapacityBytes());
    assertThat(stats.leaseBytes()).isLessThanOrEqualTo(stats.poolCapacityBytes() * 3 / 4);
    assertThat(stats.queriesPending()).isLessThanOrEqualTo(stats.leases());
    if (stats.unsealedBlocks() == 0) {
      assertThat(stats.residentBytes()).isEqualTo(stats.poolUsedBytes());
    }
    assertThat(stats.pinnedBlocks())
        .isLessThanOrEqualTo(stats.residentBlocks() + stats.unsealedBlocks());
    checkNoRangeIsReused();
  }

  /** A range that a publish may write is in no other plan that an engine may still follow. */
  private void checkNoRangeIsReused() {
    Map<Long, Boolean> writers = new HashMap<>();
    List<EngineModel> all = new ArrayList<>(engines.values());
    all.addAll(dead);
    for (EngineModel engine : all) {
      for (EngineModel.Op op : engine.ops) {
        GrantState state = engine.state(op);
        if (state == GrantState.GRANTED || state == GrantState.ACTIVE) {
          for (long address : engine.plan(op)) {
            Boolean writer = writers.put(address, op.publish);
            assertThat(writer == null || (!writer && !op.publish))
                .as("address %d is in two plans, one of which writes", address)
                .isTrue();
          }
        }
      }
    }
  }

  private void windDown() {
    for (EngineModel engine : List.copyOf(engines.values())) {
      engines.remove(engine.slot);
      core.sessionLost(engine.slot, nowNs);
      dead.add(engine);
    }
    for (EngineModel engine : dead) {
      core.processExited(engine.slot, nowNs);
    }
    CoreStats stats = core.stats(nowNs);
    assertThat(stats.pinRefs()).isZero();
    assertThat(stats.pinnedBlocks()).isZero();
    assertThat(stats.leases()).isZero();
    assertThat(stats.queriesPending()).isZero();
    assertThat(stats.leaseBytes()).isZero();
    assertThat(stats.grantsActive()).isZero();
    assertThat(stats.unsealedBlocks()).isZero();
    assertThat(stats.sessions()).isZero();
    assertThat(stats.sessionsRetained()).isZero();
    assertThat(stats.registrations()).isZero();
    assertThat(stats.poolUsedBytes()).isEqualTo(stats.residentBytes());
    assertThat(stats.insertionsTotal()).isPositive();
    assertThat(stats.restoresTotal()).isPositive();
  }
}
