package io.orbitkv.bench.simulator;

import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreException;
import io.orbitkv.core.CoreStats;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.Supplier;

/**
 * One run: a Manager, its device and some engines, the virtual time, and the rules that are looked
 * at after each step. A step is one number, from which all that happens in it follows.
 */
final class World implements AutoCloseable {
  private static final int DEAR_CHECK_STEPS = 512;
  private static final long BEGIN_NS = 1_000_000_000L;
  private static final long LEAST_STEP_NS = 1_000;
  private static final long STEP_NS_MASK = 0x3fff;
  private static final long CALM_ROUND_NS = 2_000_000;
  private static final long CALM_BOUND_NS = 1_000_000_000L;
  private static final long SERVED_NS = 150_000_000; // more than the longest sleep
  private static final long MAX_WAKE_DELAY_NS = 30_000_000;
  private static final long MAX_DISK_DELAY_NS = 3_000_000_000L;
  private static final long STUCK_NS = 120_000_000_000L;
  private static final long[] JUMPS_NS = {10_000_000, 150_000_000, 4_000_000_000L, 70_000_000_000L};
  private static final long STOP_BIT = 1L << 40;
  private static final int SLEEP_MASK = 7;
  private static final int END_ROUNDS = 300;
  private static final int LEAST_END_ROUNDS = 8;
  private static final long ARENA_SLOT_BYTES = 512;

  final Variant variant;
  final Counts counts = new Counts();
  private final Regions regions = new Regions();
  private final SimulatedManager manager;
  private final SimulatedDisk disk;
  private final SimulatedEngine[] engines;
  private final List<SimulatedOperation> touching = new ArrayList<>();
  private final BitSet[] whole = new BitSet[Blocks.NAMESPACES];
  private final BitSet[] everWhole = new BitSet[Blocks.NAMESPACES];
  private final int[] clears = new int[Blocks.NAMESPACES];
  private List<String> trace;
  long now = BEGIN_NS;
  private long number;
  private long hash;
  private int accesses;
  private boolean inCall;
  private boolean calm;
  private long calmSinceNs;
  private int rounds;
  private boolean stopping;

  World(int engineCount, Variant variant) {
    this.variant = variant;
    for (int i = 0; i < Blocks.NAMESPACES; i++) {
      whole[i] = new BitSet();
      everWhole[i] = new BitSet();
    }
    disk = new SimulatedDisk(this);
    manager = new SimulatedManager(this, regions, disk);
    engines = new SimulatedEngine[engineCount];
    for (int i = 0; i < engineCount; i++) {
      engines[i] = new SimulatedEngine(this, i, regions);
      engines[i].connect();
    }
  }

  /** Has each step say what it does. */
  void record(List<String> lines) {
    trace = lines;
  }

  /** Says what happens, where somebody wants to know. */
  void note(Supplier<String> line) {
    if (trace != null) {
      trace.add("%10.3f ms  %s".formatted((now - BEGIN_NS) / 1e6, line.get()));
    }
  }

  SimulatedManager manager() {
    return manager;
  }

  /** Adds to the hash of the run. */
  void fold(long value) {
    hash = Mix.mix(hash + value);
  }

  /** Hash of all that happened. */
  long hash() {
    return hash;
  }

  Link connect(SimulatedEngine engine) {
    return manager.connect(engine, regions);
  }

  // ---- steps ----

  /** Makes the step of a number. */
  void step(long stepNumber) {
    number = stepNumber;
    accesses = 0;
    counts.steps++;
    Kind kind = Kind.of(stepNumber);
    SimulatedEngine engine = engines[(int) (stepNumber >>> 10 & 0xff) % engines.length];
    now += LEAST_STEP_NS + (stepNumber >>> 18 & STEP_NS_MASK);
    note(() -> "-- " + Tally.label(kind) + ", engine " + engine.number);
    int effect = act(kind, engine, Mix.mix(stepNumber) >>> 1);
    if (kind.isFault() && effect > 0 && kind != Kind.LOST_WAKE && kind != Kind.LATE_WAKE) {
      counts.faults.add(kind); // wake-ups are counted when they are lost or late
    }
    fold(effect);
    if (counts.steps % DEAR_CHECK_STEPS == 0) {
      checkDear();
    }
  }

  private int act(Kind kind, SimulatedEngine engine, long bits) {
    return switch (kind) {
      case MANAGER -> manager.turn(bits, false);
      case ENGINE -> engine.step(bits);
      case DISK -> count(disk.complete(bits));
      case MANAGER_LEARNS -> count(manager.learn(bits));
      case MANAGER_SLEEPS -> {
        manager.announceSleep();
        yield 1;
      }
      case ENGINE_SLEEPS -> count(engine.announceSleep(bits));
      case CONNECT -> count(engine.connect());
      case PUBLISH -> count(engine.publish(bits));
      case LOOKUP -> count(engine.lookUp(bits));
      case RESTORE -> count(engine.restore(bits));
      case RELEASE -> count(engine.release(bits));
      case CANCEL_QUERY -> count(engine.cancelQuery(bits));
      case CALM -> calm();
      default -> fault(kind, engine, bits);
    };
  }

  private int fault(Kind kind, SimulatedEngine engine, long bits) {
    return switch (kind) {
      case CANCEL -> count(engine.cancel(bits));
      case DEATH -> count(engine.die());
      case SOCKET_END -> count(engine.loseSocket());
      case UNREGISTER -> count(engine.unregister(bits));
      case LOST_WAKE -> loseWake(engine, bits);
      case LATE_WAKE -> delayWake(engine, bits);
      case SLOW_COPY -> count(engine.freeze(bits));
      case CLOCK_JUMP -> jump(bits);
      case REPEATED_COMMAND -> count(engine.repeat(bits));
      case HOARD -> count(engine.hoard(bits));
      case DISK_ERROR -> count(disk.fail(bits));
      case DISK_SLOW -> count(disk.delay(bits, now + (bits >>> 8) % MAX_DISK_DELAY_NS));
      case DISK_STUCK -> count(disk.delay(bits, now + STUCK_NS));
      case CLEAR -> (bits >>> 1 & 1) == 0 ? clear((int) (bits & 1)) : 0;
      default -> throw new IllegalStateException("no fault: " + kind);
    };
  }

  private static int count(boolean effect) {
    return effect ? 1 : 0;
  }

  private Sleeper someSleeper(SimulatedEngine engine, long bits) {
    return (bits & 1) == 0 ? manager.sleeper() : engine.agent(bits);
  }

  private int loseWake(SimulatedEngine engine, long bits) {
    Sleeper sleeper = someSleeper(engine, bits);
    if (sleeper != null) {
      sleeper.loseNext();
    }
    return count(sleeper != null);
  }

  private int delayWake(SimulatedEngine engine, long bits) {
    Sleeper sleeper = someSleeper(engine, bits);
    if (sleeper != null) {
      sleeper.delayNext((bits >>> 8) % MAX_WAKE_DELAY_NS);
    }
    return count(sleeper != null);
  }

  private int jump(long bits) {
    long ns = JUMPS_NS[(int) (bits & 3)];
    now += ns;
    note(() -> "the clock jumps by ms=" + ns / 1_000_000);
    return 1;
  }

  private int clear(int namespace) {
    try {
      manager.core.clear(Blocks.digest(namespace), now);
    } catch (CoreException e) { // the former clear is not on disk yet
      return 0;
    }
    for (SimulatedEngine engine : engines) {
      if (engine.namespace == namespace) {
        engine.cleared();
      }
    }
    clears[namespace]++;
    whole[namespace].clear();
    note(() -> "namespace " + namespace + " is cleared");
    checkSources();
    return 1;
  }

  // ---- steps of engines within a call of the core ----

  void beginCall() {
    inCall = true;
  }

  void endCall() {
    inCall = false;
  }

  /** The Manager is about to access a session's grant table: the engine may be first. */
  void between(Link link) {
    if (!inCall || calm) {
      return;
    }
    long bits = Mix.at(number, ++accesses) >>> 1;
    if ((bits & 3) == 0) {
      link.engine.stepWithin(link, bits >>> 2);
    } else if ((bits & 0xfff) == 1 && link.engine.die()) {
      counts.faults.add(Kind.DEATH);
    }
  }

  // ---- rules ----

  /** An operation begins or ends to touch memory of the pool. */
  void touching(SimulatedOperation operation, boolean touches) {
    if (touches) {
      touching.add(operation);
    } else {
      touching.remove(operation);
    }
  }

  /** The process of an operation is dead; where that is no proof, it counts as Active for good. */
  void processDied(SimulatedOperation operation, boolean exitProves) {
    if (exitProves) {
      touching.remove(operation);
    }
  }

  boolean isStopping() {
    return stopping;
  }

  /** Blocks of what is Active belong to the grant. */
  void checkSources() {
    for (int i = 0; i < touching.size(); i++) {
      SimulatedOperation operation = touching.get(i);
      Violation.require(
          !operation.link.settled
              && manager.core.holdsGranted(operation.link.slot, operation.stepped.id()),
          Rule.SOURCES,
          () -> "given up while Active: " + operation);
    }
  }

  /** Takes note that all of a publish is in the pool. */
  void wholeDrained(SimulatedOperation operation) {
    int namespace = operation.link.engine.namespace;
    for (int block : operation.blocks) {
      everWhole[namespace].set(block);
      if (!operation.cleared) {
        whole[namespace].set(block);
      }
    }
  }

  int clears(int namespace) {
    return clears[namespace];
  }

  /** A lookup has found a block. */
  void requireVisible(int namespace, int block, int clearsBefore) {
    boolean sameTime = clears[namespace] == clearsBefore;
    Violation.require(
        (sameTime ? whole : everWhole)[namespace].get(block),
        Rule.VISIBLE,
        () -> "found: block " + block + " of namespace " + namespace);
  }

  private void checkDear() {
    try {
      manager.core.requireBalanced();
    } catch (IllegalStateException e) {
      throw new Violation(Rule.BALANCE, e);
    }
    checkRanges();
  }

  private void checkRanges() {
    int slots = (int) (manager.arenas[0].byteSize() / ARENA_SLOT_BYTES);
    byte[] users = new byte[slots * manager.arenas.length];
    for (SimulatedOperation operation : touching) {
      boolean writes = operation.stepped.isPublish();
      operation.stepped.visitRanges((arena, offset, length) -> {
        int first = arena * slots + (int) (offset / ARENA_SLOT_BYTES);
        for (int i = 0; i < length / ARENA_SLOT_BYTES; i++) {
          boolean free = users[first + i] == 0 || (!writes && users[first + i] == 1);
          Violation.require(
              free, Rule.RANGES, () -> "offset " + offset + " is in two plans: " + operation);
          users[first + i] = (byte) (writes ? 2 : 1);
        }
      });
    }
  }

  /** Nobody may give up waiting where there was time enough, without faults, to be served. */
  void requireNotDue(Supplier<String> what) {
    Violation.require(!calm || now - calmSinceNs < SERVED_NS, Rule.TERMINAL, what);
  }

  // ---- calm and the end ----

  /** Everybody goes on, without faults, until each operation has ended; returns rounds. */
  private int calm() {
    calm = true;
    calmSinceNs = now;
    rounds = 0;
    while (!Arrays.stream(engines).allMatch(SimulatedEngine::isIdle)) {
      if (now - calmSinceNs > CALM_BOUND_NS) {
        String pending =
            Arrays.stream(engines)
                .filter(e -> !e.isIdle())
                .map(SimulatedEngine::pending)
                .toList()
                .toString();
        throw new Violation(
            Rule.TERMINAL, "pending after ms=" + CALM_BOUND_NS / 1_000_000 + ": " + pending);
      }
      now += CALM_ROUND_NS;
      round();
    }
    for (SimulatedEngine engine : engines) {
      engine.requireNothingCharged();
    }
    calm = false;
    return rounds;
  }

  /** Everybody gets on; now and then one side begins to sleep when the other has just worked. */
  private void round() {
    long bits = Mix.at(number, ++rounds);
    manager.learnAll();
    for (SimulatedEngine engine : engines) {
      engine.stepAll();
    }
    if ((bits & SLEEP_MASK) == 0) {
      manager.announceSleep();
    }
    manager.turn(0, true);
    if ((bits >>> Integer.SIZE & SLEEP_MASK) == 0) {
      for (SimulatedEngine engine : engines) {
        engine.announceSleep(bits >>> 1);
      }
    }
    disk.completeAll();
  }

  /**
   * Ends the run: all operations end, by a stop of the Manager in every second run; else every
   * block that is left is read. Then all is given back.
   */
  void end() {
    if ((number & STOP_BIT) == 0) {
      stopping = true;
      note(() -> "the Manager stops");
      manager.stop();
      for (SimulatedEngine engine : engines) {
        engine.grantsAreOver();
      }
    }
    calm();
    round(); // the Manager learns who is gone
    if (stopping) {
      Violation.require(
          manager.core.isQuiescent(), Rule.TERMINAL, () -> "a stop is held up by an operation");
    } else {
      witness();
    }
    for (SimulatedEngine engine : engines) {
      engine.die();
    }
    disk.release();
    calm = true;
    CacheCore core = manager.core;
    for (int i = 0; i < END_ROUNDS && (i < LEAST_END_ROUNDS || !isAtRest()); i++) {
      now += CALM_BOUND_NS;
      round();
    }
    checkDear();
    checkBudgets(core.stats(now));
  }

  /** Reads every block that is left. */
  private void witness() {
    for (int namespace = 0; namespace < Math.min(Blocks.NAMESPACES, engines.length); namespace++) {
      SimulatedEngine engine = engines[namespace];
      for (int chain = 0; chain < Blocks.CHAINS; chain++) {
        engine.connect();
        engine.lookUpAll(chain);
        calm();
        while (engine.restore(0)) {
          calm();
        }
      }
    }
  }

  private boolean isAtRest() {
    return disk.isIdle() && !manager.core.ssdIsBusy();
  }

  private void checkBudgets(CoreStats stats) {
    int retained = touching.size(); // what nobody can prove to have ended
    long links = touching.stream().map(operation -> operation.link).distinct().count();
    requireEqual("operations retained", stats.retainedOperations(), retained);
    requireEqual("operations", stats.grantsActive(), retained);
    requireEqual("sessions retained", stats.sessionsRetained(), links);
    requireEqual("sessions", stats.sessions(), 0);
    requireEqual("leases", stats.leases(), 0);
    requireEqual("lease bytes", stats.leaseBytes(), 0);
    requireEqual("queries", stats.queriesPending(), 0);
    counts.retained += retained;
    if (retained == 0) {
      requireEqual("registrations", stats.registrations(), 0);
      requireEqual("pins", stats.pinRefs(), 0);
      requireEqual("unsealed blocks", stats.unsealedBlocks(), 0);
      requireEqual("pool bytes", stats.poolUsedBytes(), stats.residentBytes());
    }
    counts.evictions += stats.evictionsTotal();
    counts.poolFull += stats.refusedTotal();
    counts.ssdLoads += stats.ssd().readBlocksTotal();
    for (long value :
        new long[] {
          stats.insertionsTotal(),
          stats.evictionsTotal(),
          stats.lookupsTotal(),
          stats.restoresTotal(),
          stats.publishesTotal(),
          stats.residentBlocks(),
          now
        }) {
      fold(value);
    }
  }

  private static void requireEqual(String what, long found, long expected) {
    Violation.require(
        found == expected, Rule.BUDGETS, () -> what + "=" + found + ", expected=" + expected);
  }

  @Override
  public void close() {
    for (SimulatedEngine engine : engines) {
      engine.die(); // lets go of the claims on its pages
    }
    regions.close();
  }
}
