package io.orbitkv.client;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Status;
import java.util.List;

/**
 * One operation of a {@link GrantWorld}: the engine's real state machine and what is known of it.
 */
final class WorldOperation {
  private static final long BOUND_NS = 30_000_000;

  final Scenario.Op op;
  final int index;
  WorldSession session;
  Lease lease;
  EngineOperation engine;
  boolean cancelled;
  boolean repeated;

  /** It was not settled when everything was cleared. */
  boolean cleared;

  /** Its record was Active when its process died. */
  boolean activeAtDeath;

  /** Generation of the registration that it captured. */
  private int captured;

  private long[] allocations;

  WorldOperation(Scenario.Op op, int index) {
    this.op = op;
    this.index = index;
  }

  boolean isBegun() {
    return engine != null;
  }

  /** Claims the pages and makes the operation; false when another is still at them. */
  boolean tryBegin(Scenario scenario, SaveBudget budget) {
    int[] pages = WorldProcess.pageNumbers(op.page(), op.blocks());
    try {
      if (op.publish()) {
        session.claims[0].requireUnclaimed(pages);
      } else {
        session.claims[0].claim(pages);
      }
    } catch (OrbitKvException e) {
      return false;
    }
    Target.Builder target = new Target.Builder(session.process.groups, op.blocks());
    target.add(0, pages);
    long bound = scenario.is(Scenario.Weakness.CLAIM_HAS_NO_BOUND) ? Long.MAX_VALUE : BOUND_NS;
    captured = session.registration.generation();
    engine = op.publish() ? publish(pages, target, bound, budget) : restore(pages, target, bound);
    return true;
  }

  private PublishOperation publish(
      int[] pages, Target.Builder target, long bound, SaveBudget budget) {
    session.process.fill(op, op.page());
    PublishItem item = new PublishItem(0, 0, null, WorldSession.hashes(op), pages);
    return new PublishOperation(
        session.engine,
        new PublishSpan(
            session.registration.id(), captured, WorldSession.HASH_BYTES, List.of(item)),
        budget.charge(1, 1),
        Fence.done(),
        bound,
        target.build(),
        session.arenas,
        session.tools);
  }

  private RestoreOperation restore(int[] pages, Target.Builder target, long bound) {
    return new RestoreOperation(
        session.engine,
        new RestoreSpan(session.registration.id(), captured, List.of(RestoreItem.of(lease, pages))),
        Fence.done(),
        bound,
        target.build(),
        session.arenas,
        session.tools,
        session.claims,
        true);
  }

  String phase() {
    return engine == null ? "NONE" : StateHash.field(engine, "phase").toString();
  }

  /** The engine may read the plan and touch what it names. */
  boolean isTouching() {
    return switch (phase()) {
      case "READ", "COPY", "DRAIN" -> true;
      default -> false;
    };
  }

  boolean hasRecord() {
    return engine != null && engine.operationId() >= 0;
  }

  int slot() {
    return GrantWord.slotOf(engine.operationId());
  }

  long generation() {
    return GrantWord.generationOf(engine.operationId());
  }

  long word() {
    return session.engineTable.wordAcquire(slot());
  }

  boolean isActive() {
    return hasRecord()
        && GrantWord.generation(word()) == generation()
        && GrantWord.state(word()) == GrantState.ACTIVE;
  }

  /** The core's operation in this record, whose it may be; null when there is none. */
  Object core() {
    Object owner = hasRecord() ? session.coreSession() : null;
    return owner == null ? null : ((Object[]) StateHash.field(owner, "operations"))[slot()];
  }

  /** True when the core has an operation of this generation that it has not settled. */
  boolean isHeldByCore() {
    Object mine = core();
    return mine != null
        && (long) StateHash.field(mine, "generation") == generation()
        && !StateHash.field(mine, "phase").toString().equals("SETTLED");
  }

  /** Every part was copied and reported. */
  boolean hasDrainedWhole() {
    return engine != null
        && (boolean) StateHash.field(engine, "drained")
        && (int) StateHash.field(engine, "entriesDone") == op.blocks();
  }

  Status status() {
    return engine instanceof PublishOperation publish
        ? publish.result().status()
        : ((RestoreOperation) engine).result().status();
  }

  /** What must hold while the Manager serves and the engine may touch memory. */
  void requireOwned() {
    Object mine = core();
    GrantWorld.require(mine != null, "the session was settled while an operation may touch memory");
    String owned = StateHash.field(mine, "phase").toString();
    GrantWorld.require(owned.equals("GRANTED"), "owners are released while Active: " + owned);
    GrantWorld.require(
        (long) StateHash.field(mine, "generation") == generation(),
        "the record is another operation's while Active");
    Object registration = StateHash.field(mine, "registration");
    GrantWorld.require(
        (int) StateHash.field(registration, "generation") == captured,
        "a copy under a registration that was not captured");
    requireRows((int[]) StateHash.field(mine, "rows"));
    if (!engine.isSettled()
        && session.engineTable.getClass() == io.orbitkv.channel.GrantTable.class) {
      GrantWorld.require(
          word() == (long) StateHash.field(engine, "activeWord"),
          "a plan is read while its record is not Active");
    }
  }

  private void requireRows(int[] rows) {
    WorldManager manager = session.manager;
    boolean first = allocations == null;
    allocations = first ? new long[op.blocks()] : allocations;
    for (int i = 0; i < op.blocks(); i++) {
      if (rows[i] < 0) {
        continue; // held already
      }
      GrantWorld.require(
          manager.pins(rows[i]) > 0, "a block is not pinned while the engine may touch it");
      long allocation = manager.allocation(rows[i]);
      GrantWorld.require(
          first || allocations[i] == allocation, "a range is another block's while Active");
      allocations[i] = allocation;
    }
  }

  void addTo(StateHash hash) {
    hash.add(cancelled).add(repeated).add(cleared).add(activeAtDeath).addFields(engine);
    if (!hasRecord()) {
      return;
    }
    hash.add(slot()).add(word());
    hash.add(session.engineTable.status(slot()).code());
    hash.add(session.engineTable.engineStatus(slot()).code());
    Object mine = core();
    hash.addFields(mine);
    hash.add(mine != null && (int) StateHash.field(mine, "planOffset") >= 0);
    int[] rows = mine == null ? null : (int[]) StateHash.field(mine, "rows");
    int count = rows == null ? 0 : (int) StateHash.field(mine, "count");
    for (int i = 0; i < count; i++) {
      hash.add(Math.clamp(rows[i], -2, 0)); // held, refused or owned
    }
  }
}
