package io.orbitkv.bench.simulator;

import io.orbitkv.channel.GroupKind;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Status;
import io.orbitkv.client.GroupSpec;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.PublishItem;
import io.orbitkv.client.SteppedLookup;
import io.orbitkv.client.SteppedMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** One engine: its process, its pages, and the sessions that it has had. */
final class SimulatedEngine {
  static final int PAGES = 128;

  /** One engine of so many has a device on which copies may outlive the process. */
  private static final int UNPROVEN_EVERY = 4;

  private static final int MAX_OPERATIONS = 6;
  private static final int MAX_LOOKS = 8;
  private static final int MAX_LEASES = 8;
  private static final long CLAIM_BOUND_NS = 200_000_000;
  private static final long LOOK_BOUND_NS = 200_000_000;
  private static final long SLEEP_NS = 100_000_000;
  private static final long MAX_FENCE_NS = 20_000_000;
  private static final long MAX_FREEZE_NS = 50_000_000;
  private static final int SHORT_LEASE_MS = 50;
  private static final long POISON = 0xdead_beef_dead_beefL;

  final World world;
  final int number;
  final int namespace;
  private final MemorySegment[] layers;
  private final GroupSpec spec;
  private final BitSet busyPages = new BitSet();
  private final List<Link> links = new ArrayList<>();
  private SteppedMemory memory;
  private Link current;
  private boolean alive;
  private int process;

  SimulatedEngine(World world, int number, Regions regions) {
    this.world = world;
    this.number = number;
    this.namespace = number % Blocks.NAMESPACES;
    this.layers = new MemorySegment[Blocks.layers(namespace)];
    List<GroupSpec.Layer> all = new ArrayList<>();
    for (int i = 0; i < layers.length; i++) {
      layers[i] = regions.take((long) PAGES * Blocks.LAYER_BYTES);
      GroupSpec.Segment whole = new GroupSpec.Segment(0, Blocks.LAYER_BYTES);
      all.add(new GroupSpec.Layer(layers[i], 0, Blocks.LAYER_BYTES, List.of(whole)));
    }
    this.spec = new GroupSpec(0, GroupKind.PREFIX, 0, PAGES, all);
  }

  String instance() {
    return "engine-" + number;
  }

  int process() {
    return process;
  }

  /** Whether the end of the process proves that its copies have ended. */
  boolean exitProves() {
    return number % UNPROVEN_EVERY != UNPROVEN_EVERY - 1;
  }

  // ---- process and sessions ----

  /** Connects and registers as far as that is needed; true when something happened. */
  boolean connect() {
    if (!alive) {
      startProcess();
    }
    if (current == null || current.session.isOver()) {
      current = world.connect(this);
      if (current == null) {
        return false;
      }
      links.add(current);
      world.note(() -> "engine " + number + " connects, session slot " + current.slot);
    }
    return register(current);
  }

  private boolean register(Link link) {
    if (link.registered || !world.manager().register(link)) {
      return false;
    }
    link.session.registered(
        link.registrationId,
        link.registrationGeneration,
        Blocks.HASH_BYTES,
        memory,
        world.manager().arenas);
    world.note(() -> "engine " + number + " registers, generation " + link.registrationGeneration);
    return true;
  }

  private void startProcess() {
    alive = true;
    process++;
    busyPages.clear();
    memory = new SteppedMemory(spec);
  }

  /** The process dies with all that is under way in it; false when it is dead. */
  boolean die() {
    if (!alive) {
      return false;
    }
    alive = false;
    memory.close();
    for (Link link : links) {
      link.operations.forEach(operation -> world.processDied(operation, exitProves()));
      link.operations.clear();
      link.looks.clear();
      world.manager().happened(link, true);
      if (link.open) {
        world.manager().happened(link, false);
      }
    }
    links.clear();
    current = null;
    world.note(() -> "engine " + number + " dies");
    return true;
  }

  /** The socket ends; false when there is none. */
  boolean loseSocket() {
    if (!canUse()) {
      return false;
    }
    Link link = current;
    link.session.end("socket has ended");
    current = null;
    world.manager().happened(link, false);
    world.note(() -> "socket of engine " + number + " ends");
    return true;
  }

  /** Withdraws the registration, whatever is under way; false when there is none. */
  boolean unregister(long bits) {
    if (!canUse() || !current.registered || current.unregistering) {
      return false;
    }
    world.note(() -> "engine " + number + " withdraws its registration");
    if ((bits & 1) == 0) {
      current.operations.forEach(operation -> operation.stepped.cancel());
    }
    Link link = current; // the engine may die meanwhile
    world.manager().unregister(link);
    link.grantsAreOver();
    return true;
  }

  private boolean canUse() {
    return alive && current != null && !current.session.isOver();
  }

  private boolean mayBegin() {
    return canUse()
        && current.registrationGeneration > 0
        && current.operations.size() < MAX_OPERATIONS;
  }

  // ---- what the callers do ----

  boolean publish(long bits) {
    int chain = (int) (bits & 0xff) % Blocks.CHAINS;
    int from = (bits >>> 8 & 1) == 0 ? 0 : (int) (bits >>> 9 & 0xff) % Blocks.CHAIN_BLOCKS;
    int wanted = 1 + (int) (bits >>> 17 & 0xff) % Blocks.CHAIN_BLOCKS;
    int count = Math.min(wanted, Blocks.CHAIN_BLOCKS - from);
    int[] pages = mayBegin() ? takePages(count) : null;
    if (pages == null) {
      return false;
    }
    SimulatedOperation operation =
        new SimulatedOperation(
            current, blocks(chain, from, count), pages, world.now, fenceAt(bits >>> 25));
    byte[] parent = from == 0 ? null : Blocks.hashes(namespace, chain).get(from - 1);
    PublishItem item =
        new PublishItem(
            0, from, parent, Blocks.hashes(namespace, chain).slice(from, from + count), pages);
    boolean[] written = {false};
    operation.stepped =
        current.session.publish(item, () -> isWritten(operation, written), CLAIM_BOUND_NS);
    begin(operation);
    return true;
  }

  /** The fence of a publish: the bytes are there from its time on, and not before. */
  private boolean isWritten(SimulatedOperation operation, boolean[] written) {
    if (world.now < operation.fenceAtNs) {
      return false;
    }
    if (!written[0]) {
      written[0] = true;
      for (int i = 0; i < operation.pages.length; i++) {
        for (int layer = 0; layer < layers.length; layer++) {
          long at = (long) operation.pages[i] * Blocks.LAYER_BYTES;
          Blocks.fill(layers[layer], at, namespace, operation.blocks[i], layer);
        }
      }
    }
    return true;
  }

  private void begin(SimulatedOperation operation) {
    operation.link.operations.add(operation);
    if (!operation.link.registered || operation.link.unregistering) {
      operation.grantsAreOver();
    }
    wakeAgent(operation.link);
    world.note(() -> "engine " + number + " begins a " + operation);
  }

  private long fenceAt(long bits) {
    return (bits & 7) == 0 ? world.now + (bits >>> 3) % MAX_FENCE_NS : 0;
  }

  private static int[] blocks(int chain, int from, int count) {
    int[] blocks = new int[count];
    for (int i = 0; i < count; i++) {
      blocks[i] = Blocks.index(chain, from + i);
    }
    return blocks;
  }

  private int[] takePages(int count) {
    if (PAGES - busyPages.cardinality() < count) {
      return null;
    }
    int[] pages = new int[count];
    int page = -1;
    for (int i = 0; i < count; i++) {
      page = busyPages.nextClearBit(page + 1);
      busyPages.set(page);
      pages[i] = page;
      for (MemorySegment layer : layers) {
        Memory.putLong(layer, (long) page * Blocks.LAYER_BYTES, POISON);
        Memory.putLong(layer, (page + 1L) * Blocks.LAYER_BYTES - Long.BYTES, POISON);
      }
    }
    return pages;
  }

  void givePages(int[] pages) {
    for (int page : pages) {
      busyPages.clear(page);
    }
  }

  /** Whether a page holds a block. */
  boolean holds(int page, int block) {
    boolean holds = true;
    for (int layer = 0; layer < layers.length; layer++) {
      long at = (long) page * Blocks.LAYER_BYTES;
      holds &= Blocks.holds(layers[layer], at, namespace, block, layer);
    }
    return holds;
  }

  boolean lookUp(long bits) {
    int way = (int) (bits >>> 8 & 7);
    LookupRequestSpec.Mode mode =
        switch (way) {
          case 0 -> LookupRequestSpec.Mode.CANDIDATES;
          case 1, 2 -> LookupRequestSpec.Mode.ALL;
          default -> LookupRequestSpec.Mode.PREFIX;
        };
    long query = (bits >>> 11 & 3) == 0 ? 1 + (bits >>> 13 & 3) : 0;
    int ageMs = (bits >>> 17 & 7) == 0 ? SHORT_LEASE_MS : 0;
    return lookUp((int) (bits & 0xff), mode, query, (int) (bits >>> 15 & 3), ageMs, false);
  }

  /** Looks up a chain to keep its lease until it ends by itself. */
  boolean hoard(long bits) {
    return lookUp((int) (bits & 0xff), LookupRequestSpec.Mode.ALL, 0, 0, 0, true);
  }

  /** Looks up a chain for a restore of all that is there. */
  boolean lookUpAll(int chain) {
    return lookUp(chain, LookupRequestSpec.Mode.ALL, 0, 0, 0, false);
  }

  private boolean lookUp(
      int number,
      LookupRequestSpec.Mode mode,
      long query,
      int revision,
      int ageMs,
      boolean hoards) {
    if (!canUse() || current.looks.size() >= MAX_LOOKS) {
      return false;
    }
    int chain = number % Blocks.CHAINS;
    LookupRequestSpec question =
        new LookupRequestSpec(
            List.of(Blocks.digest(namespace)),
            1,
            Blocks.hashes(namespace, chain),
            mode,
            query,
            revision,
            ageMs);
    SteppedLookup lookup = current.session.lookup(question);
    if (lookup == null) {
      return false;
    }
    int clears = world.clears(namespace);
    current.looks.add(new Link.Look(lookup, chain, mode, hoards, clears, world.now));
    world.note(() -> "engine " + this.number + " looks up chain " + chain + ", " + mode);
    return true;
  }

  boolean restore(long bits) {
    if (!mayBegin() || current.leases.isEmpty()) {
      return false;
    }
    int index = (int) (bits & 0xff) % current.leases.size();
    Link.Held held = current.leases.get(index);
    int[] pages = takePages(held.positions().length);
    if (pages == null) {
      return false;
    }
    current.leases.remove(index);
    int[] blocks = held.positions().clone();
    for (int i = 0; i < blocks.length; i++) {
      blocks[i] = Blocks.index(held.chain(), blocks[i]);
    }
    SimulatedOperation operation =
        new SimulatedOperation(current, blocks, pages, world.now, fenceAt(bits >>> 8));
    operation.stepped =
        current.session.restore(
            held.lease(), pages, () -> world.now >= operation.fenceAtNs, CLAIM_BOUND_NS);
    begin(operation);
    return true;
  }

  boolean release(long bits) {
    if (!canUse() || current.leases.isEmpty()) {
      return false;
    }
    Link.Held held = current.leases.remove((int) (bits & 0xff) % current.leases.size());
    current.session.release(held.lease());
    world.note(() -> "engine " + number + " releases lease " + held.lease().id());
    return true;
  }

  /** Voids what a query has got; false when there is no session. */
  boolean cancelQuery(long bits) {
    if (!canUse()) {
      return false;
    }
    current.session.cancelQuery(1 + (bits & 3), (int) (bits >>> 2 & 3));
    return true;
  }

  boolean cancel(long bits) {
    SimulatedOperation operation = someOperation(bits);
    if (operation == null || operation.stepped.isDone()) {
      return false;
    }
    operation.stepped.cancel();
    wakeAgent(operation.link);
    world.note(() -> "engine " + number + " cancels the " + operation);
    return true;
  }

  boolean freeze(long bits) {
    SimulatedOperation operation = someOperation(bits);
    if (operation == null || !operation.stepped.isCopying()) {
      return false;
    }
    operation.frozenUntilNs = world.now + (bits >>> 8) % MAX_FREEZE_NS;
    world.note(() -> "engine " + number + " stands still in the copy of the " + operation);
    return true;
  }

  /** Sends a command again, of an operation that is under way or has ended. */
  boolean repeat(long bits) {
    if (!canUse()) {
      return false;
    }
    SimulatedOperation operation =
        (bits >>> 8 & 1) == 0 ? current.lastSettled : someOperation(bits);
    if (operation == null || operation.link != current || operation.stepped.id() < 0) {
      return false;
    }
    world.note(() -> "engine " + number + " repeats the command of the " + operation);
    return current.session.repeat(operation.stepped);
  }

  private SimulatedOperation someOperation(long bits) {
    Link link = someLink(bits >>> 40);
    if (link == null || link.operations.isEmpty()) {
      return null;
    }
    return link.operations.get((int) (bits & 0xff) % link.operations.size());
  }

  private Link someLink(long bits) {
    return links.isEmpty() ? null : links.get((int) (bits % links.size()));
  }

  // ---- copy agents ----

  /** The agent of one session does a little; returns work done. */
  int step(long bits) {
    Link link = someLink(bits >>> 40);
    if (link == null || !wakes(link)) {
      return 0;
    }
    int work = 1;
    if ((bits >>> 8 & 3) != 0) {
      work += takeReplies(link);
    }
    int steps = 1 + (int) (bits >>> 10 & 3);
    for (int i = 0; i < steps && !link.operations.isEmpty() && alive; i++) {
      int size = link.operations.size();
      work += link.operations.get((int) ((bits & 0xff) % size)).step() ? 1 : 0;
    }
    tidy(link);
    return work;
  }

  /** Makes a step while the Manager is between two accesses to the session's grant table. */
  void stepWithin(Link link, long bits) {
    if (alive && !link.operations.isEmpty()) {
      link.operations.get((int) (bits % link.operations.size())).step();
    }
  }

  /** Every agent looks at everything; returns work done. */
  int stepAll() {
    int work = 0;
    for (int i = links.size() - 1; i >= 0; i--) {
      if (wakes(links.get(i))) {
        work += look(links.get(i));
        tidy(links.get(i));
      }
    }
    return work;
  }

  private int look(Link link) {
    int work = takeReplies(link);
    for (int i = link.operations.size() - 1; i >= 0; i--) {
      work += link.operations.get(i).step() ? 1 : 0;
    }
    return work;
  }

  /** True when the agent is awake, or wakes up now. */
  private boolean wakes(Link link) {
    Sleeper agent = link.agent;
    if (agent.isAwake() || link.session.isOver()) {
      return true;
    }
    if (agent.isAsleep() ? agent.isDue() : look(link) > 0 || agent.isSignalled()) {
      wakeAgent(link);
      return true;
    }
    if (!agent.isAsleep()) {
      agent.sleepUntil(world.now + SLEEP_NS);
      world.note(() -> "the agent of engine " + number + " sleeps");
    }
    return false;
  }

  private static void wakeAgent(Link link) {
    if (!link.agent.isAwake()) {
      link.agent.awake();
      link.announceAgent(0);
    }
  }

  boolean announceSleep(long bits) {
    Link link = someLink(bits >>> 40);
    if (link == null || !link.agent.isAwake()) {
      return false;
    }
    link.announceAgent(1);
    link.agent.announce();
    return true;
  }

  /** The agent of some session; null without one. */
  Sleeper agent(long bits) {
    Link link = someLink(bits >>> 40);
    return link == null ? null : link.agent;
  }

  /** Forgets a session that is over and in which nothing is left. */
  private void tidy(Link link) {
    if (link.session.isOver() && link.isIdle()) {
      links.remove(link);
      if (link == current) {
        current = null;
      }
    }
  }

  // ---- answers ----

  private int takeReplies(Link link) {
    int work = 0;
    if (link.session.hasReplies()) {
      link.session.takeReplies();
      work = 1;
    }
    for (int i = link.looks.size() - 1; i >= 0; i--) {
      work += takeAnswer(link, link.looks.get(i)) ? 1 : 0;
    }
    return work;
  }

  private boolean takeAnswer(Link link, Link.Look look) {
    SteppedLookup lookup = look.lookup();
    boolean late = world.now - look.atNs() > LOOK_BOUND_NS || link.session.isOver();
    if (!lookup.isAnswered()) {
      if (late && lookup.tryAbandon()) {
        if (!link.session.isOver()) {
          world.requireNotDue(() -> "a lookup of engine " + number + " is not answered");
        }
        world.counts.lookupsAbandoned++;
        link.looks.remove(look);
        return true;
      }
      return false;
    }
    link.looks.remove(look);
    Status status = lookup.status();
    if (status == Status.OK) {
      found(link, look, lookup.result());
    } else {
      Violation.require(
          status == Status.SUPERSEDED || status == Status.LIMIT,
          Rule.ANSWERS,
          () -> "a lookup of engine " + number + " is refused: " + status);
      world.counts.lookupsRefused++;
    }
    lookup.close();
    return true;
  }

  private void found(Link link, Link.Look look, LookupResult result) {
    world.counts.lookups.add(result.outcome());
    BitSet present = result.groups().getFirst().present();
    world.fold(result.outcome().name().hashCode() + 31L * present.hashCode());
    for (int i = present.nextSetBit(0); i >= 0; i = present.nextSetBit(i + 1)) {
      world.requireVisible(namespace, Blocks.index(look.chain(), i), look.clears());
    }
    if (result.leases().isEmpty()) {
      return;
    }
    Lease lease = result.leases().getFirst();
    int[] positions = present.stream().limit(lease.blocks()).toArray();
    Violation.require(
        positions.length == lease.blocks(),
        Rule.ANSWERS,
        () ->
            "a lease of "
                + lease.blocks()
                + " blocks for "
                + positions.length
                + " that are present");
    world.note(
        () -> "engine " + number + " has lease " + lease.id() + ", blocks " + lease.blocks());
    if (look.hoards() || link != current) {
      return;
    }
    if (link.leases.size() >= MAX_LEASES) {
      link.session.release(lease);
    } else {
      link.leases.add(new Link.Held(lease, look.chain(), positions));
    }
  }

  // ---- the end ----

  /** The Manager stops: nothing more is granted. */
  void grantsAreOver() {
    links.forEach(Link::grantsAreOver);
  }

  boolean isIdle() {
    return links.stream().allMatch(Link::isIdle);
  }

  /** What is still under way. */
  String pending() {
    List<Object> pending = new ArrayList<>();
    for (Link link : links) {
      pending.addAll(link.operations);
      link.looks.forEach(look -> pending.add("lookup of chain " + look.chain()));
    }
    return pending.toString();
  }

  boolean hasLeases() {
    return current != null && !current.leases.isEmpty();
  }

  /** Marks operations whose blocks a clear keeps from becoming visible. */
  void cleared() {
    for (Link link : links) {
      for (SimulatedOperation operation : link.operations) {
        operation.cleared |= operation.isClaimed();
      }
    }
  }

  /** What the process was charged with is given back. */
  void requireNothingCharged() {
    if (alive) {
      Violation.require(
          memory.publishesCharged() == 0,
          Rule.BUDGETS,
          () -> "engine " + number + ": publishes charged=" + memory.publishesCharged());
      Violation.require(
          memory.isUnclaimed() && busyPages.isEmpty(),
          Rule.BUDGETS,
          () -> "engine " + number + ": pages stay claimed");
    }
  }
}
