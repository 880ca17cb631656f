package io.orbitkv.bench.simulator;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Status;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.SteppedOperation;
import java.util.BitSet;

/** One restore or publish of an engine, and what has been seen of it. */
final class SimulatedOperation {
  final Link link;
  final int[] blocks; // number of each block
  final int[] pages;
  final long begunNs;
  SteppedOperation stepped;

  /** Its copy stands still until then. */
  long frozenUntilNs;

  /** When its fence is done. */
  final long fenceAtNs;

  /** Its namespace was cleared after it had been claimed: nothing of it becomes visible. */
  boolean cleared;

  private boolean grantsAreOver;
  private boolean touching;
  private boolean whole;
  private boolean pagesGiven;
  private boolean answered;

  SimulatedOperation(Link link, int[] blocks, int[] pages, long begunNs, long fenceAtNs) {
    this.link = link;
    this.blocks = blocks;
    this.pages = pages;
    this.begunNs = begunNs;
    this.fenceAtNs = fenceAtNs;
  }

  /** Makes one step; true when something moved. */
  boolean step() {
    SimulatedEngine engine = link.engine;
    if (engine.world.now < frozenUntilNs) {
      return false;
    }
    boolean moved = stepped.step(engine.world.now);
    observe(engine);
    return moved;
  }

  private void observe(SimulatedEngine engine) {
    World world = engine.world;
    boolean touches = stepped.mayTouchPool();
    if (touches != touching) {
      Violation.require(!touches || !grantsAreOver, Rule.NEVER, () -> "granted too late: " + this);
      touching = touches;
      world.touching(this, touches);
    }
    Violation.require(
        !touches || !stepped.pagesFree(), Rule.PAGES, () -> "pages are free while Active: " + this);
    if (!whole && stepped.isPublish() && stepped.hasDrainedWhole()) {
      whole = true;
      world.wholeDrained(this);
    }
    if (!answered && stepped.isDone()) {
      answered = true;
      answer(world);
    }
    if (!pagesGiven && answered && stepped.pagesFree()) {
      pagesGiven = true;
      engine.givePages(pages);
    }
    if (stepped.isSettled()) {
      link.operations.remove(this);
      link.lastSettled = this;
    }
  }

  private void answer(World world) {
    Status status = stepped.status();
    if (stepped.isPublish()) {
      world.counts.publishes.add(status);
      checkPublished(stepped.published());
    } else {
      world.counts.restores.add(status);
      checkRestored(world, status);
    }
    world.counts.blocksMoved += status == Status.OK ? blocks.length : 0;
    world.fold(status.code() + 31L * blocks[0]);
    if (stepped.message().startsWith("not claimed")) {
      world.requireNotDue(() -> "never claimed: " + this);
    }
    world.note(() -> this + " ends: " + status + " " + stepped.message());
    boolean expected =
        switch (status) {
          case OK, CANCELLED, SESSION_ENDED, STALE_REGISTRATION, LIMIT -> true;
          case STOPPING -> world.isStopping();
          case POOL_FULL -> stepped.isPublish();
          case LEASE_ENDED -> !stepped.isPublish();
          default -> false;
        };
    Violation.require(
        expected, Rule.ANSWERS, () -> this + " ended with " + status + ": " + stepped.message());
  }

  private void checkPublished(PublishResult result) {
    int sum = result.stored() + result.held() + result.refused();
    Violation.require(
        sum == blocks.length || result.status() == Status.SESSION_ENDED,
        Rule.ANSWERS,
        () -> this + ": stored, held and refused are " + sum + " of " + blocks.length);
    Violation.require(
        result.status() != Status.OK || (result.refused() == 0 && (whole || result.stored() == 0)),
        Rule.ANSWERS,
        () -> this + " is said to be stored: " + result);
  }

  private void checkRestored(World world, Status status) {
    BitSet missing = stepped.notDelivered();
    Violation.require(
        status != Status.OK || missing.isEmpty(), Rule.ANSWERS, () -> this + " misses " + missing);
    for (int i = 0; i < pages.length; i++) {
      if (!missing.get(i)) {
        int index = i;
        Violation.require(
            link.engine.holds(pages[i], blocks[i]),
            Rule.BYTES,
            () -> this + ": wrong bytes of block " + blocks[index] + " in page " + pages[index]);
        world.counts.verifiedBlocks++;
      }
    }
  }

  /** The Manager may grant nothing more to it. */
  void grantsAreOver() {
    grantsAreOver = true;
  }

  /** True once the Manager has taken the command, or has refused it. */
  boolean isClaimed() {
    if (stepped.id() < 0) {
      return false;
    }
    long word = link.managerTable.wordAcquire(GrantWord.slotOf(stepped.id()));
    return GrantWord.state(word) != GrantState.RESERVED;
  }

  @Override
  public String toString() {
    String id = stepped.id() < 0 ? "no record yet" : "operation 0x%x".formatted(stepped.id());
    return "%s of blocks %d..%d by engine %d, session slot %d, %s"
        .formatted(
            stepped.isPublish() ? "publish" : "restore",
            blocks[0],
            blocks[blocks.length - 1],
            link.engine.number,
            link.slot,
            id);
  }
}
