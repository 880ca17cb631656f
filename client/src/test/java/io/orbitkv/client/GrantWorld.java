package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreOutput;
import io.orbitkv.core.CoreStats;
import io.orbitkv.core.RegistrationRequest;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * One Manager core and one engine session, both real, on plain memory of their own, and some
 * operations between them. Each access of the core to the grant table is a point at which the
 * engine may make steps; each step of the engine makes one access. What happens next is chosen by
 * another.
 */
final class GrantWorld implements SteppedTable.Watcher {
  /** Fresh bytes that one world needs. */
  static final long BYTES = 96L << 20;

  private static final long EPOCH = 5;
  private static final int BLOCK_BYTES = 512;
  private static final int PAGES = 128;
  private static final int PART_ENTRIES = 16;
  private static final long BOUND_NS = 30_000_000;
  private static final long LEASE_AGE_NS = 1L << 50;
  private static final long ROUND_NS = 1_000_000;
  private static final int SLAB = 2 << 20;
  private static final int HASH_BYTES = 16;

  /** Dirty bits of the first records. */
  private static final long DIRTY_OFFSET = 256;

  private static final int ROUNDS = 60;

  /** What may happen beside the protocol's own steps; one fault a run at most. */
  record Scenario(int publishBlocks, int restoreBlocks, boolean cancel, String fault) {}

  /** Makes the Manager's view of the table; a weakened one breaks a rule. */
  interface TableMaker extends BiFunction<MemorySegment, SteppedTable.Watcher, SteppedTable> {}

  /**
   * The Manager's table of a run and the engine's.
   *
   * @param rechecks whether the Manager reads records also without their dirty bit
   */
  record Tables(TableMaker manager, Function<MemorySegment, GrantTable> engine, boolean rechecks) {
    /** Both as they are. */
    static Tables real() {
      return new Tables(SteppedTable::new, GrantTable::open, true);
    }
  }

  /** Leaves a call of the core where its process dies. */
  private static final class ManagerDied extends Error {
    private static final long serialVersionUID = 1;

    ManagerDied() {
      super("", null, false, false);
    }
  }

  private final Scenario scenario;
  private final Explorer.Choices choices;
  private final boolean rechecks;
  private final MemorySegment memory;
  private long taken;

  private final MemorySegment channel;
  private final GrantTable engineTable;
  private final EngineSession session;
  private final CacheCore core;
  private final MemorySegment pages;
  private final GroupMemory[] groups;
  private final PageClaims[] claims;
  private final MemorySegment[] arenas;
  private final CopyTools.Pool tools;
  private final int registrationId;
  private final int registrationGeneration;
  private final MemorySegment data;

  private final CommandRing.Consumer[] requests = new CommandRing.Consumer[3];
  private final ByteRing.Consumer[] requestBytes = new ByteRing.Consumer[3];
  private final CommandRing.Producer[] replies = new CommandRing.Producer[4];
  private final ByteRing.Producer[] replyBytes = new ByteRing.Producer[4];
  private final Command lastReply = new Command();

  private final SaveBudget budget = new SaveBudget();
  private final List<EngineOperation> operations = new ArrayList<>();
  private final boolean[] cancelled = new boolean[2];
  private PublishOperation publish;
  private RestoreOperation restore;
  private long now = 1;
  private boolean exploring;
  private boolean managerDead;
  private boolean engineDead;
  private boolean faulted;
  private boolean socketEndSeen;
  private boolean exitSeen;
  private boolean violated;
  private boolean settled;
  private boolean repeated;
  private long leaseId;
  private long baseline;

  /** Hash of the core's call under way: what it read so far; 0 between calls. */
  private long call;

  private final ArrayDeque<String> trace = new ArrayDeque<>();

  GrantWorld(Scenario scenario, Tables tables, MemorySegment memory, Explorer.Choices choices) {
    this.scenario = scenario;
    this.choices = choices;
    this.rechecks = tables.rechecks();
    this.memory = memory;
    channel = take(ChannelDescriptor.REGION_BYTES);
    ChannelDescriptor.format(channel, 0, EPOCH, 0);
    MemorySegment grants = take(GrantTable.REGION_BYTES);
    GrantTable.format(grants);
    engineTable = tables.engine().apply(grants);
    session = new EngineSession(channel, engineTable, EPOCH, () -> {});
    arenas = new MemorySegment[] {take(SLAB)};
    pages = take((long) PAGES * BLOCK_BYTES);
    data = take(1 << 20);
    groups =
        new GroupMemory[] {GroupMemory.of(GroupSpec.contiguous(pages, BLOCK_BYTES, PAGES), true)};
    claims = new PageClaims[] {PageClaims.enter(groups[0].address())};
    tools = new CopyTools.Pool(arenas);
    for (int ring :
        new int[] {ChannelDescriptor.QUERY_REQUESTS, ChannelDescriptor.PUBLISH_REQUESTS}) {
      requests[ring] = new CommandRing.Consumer(channel, ring);
      requestBytes[ring] = new ByteRing.Consumer(channel, ring);
      replies[ring + 1] = new CommandRing.Producer(channel, ring + 1);
      replyBytes[ring + 1] = new ByteRing.Producer(channel, ring + 1);
    }
    core =
        new CacheCore(
            new CoreConfig(
                new long[] {SLAB}, SLAB, SLAB, SLAB, LEASE_AGE_NS, PART_ENTRIES, this::take),
            EPOCH,
            new Output());
    int slot = core.reserveSlot();
    core.openSession(slot, tables.manager().apply(grants, this), "engine", 1, true, now);
    byte[] namespace = new byte[Protocol.NAMESPACE_BYTES];
    CacheCore.RegistrationId id =
        core.register(
            slot,
            new RegistrationRequest(
                namespace,
                HASH_BYTES,
                0,
                0,
                0,
                List.of(new RegistrationRequest.Group(0, BLOCK_BYTES, PAGES)),
                false,
                true),
            now);
    core.confirmMappings(slot, id.id(), id.generation());
    registrationId = id.id();
    registrationGeneration = id.generation();
  }

  private MemorySegment take(long bytes) {
    MemorySegment taken4k = memory.asSlice(taken, bytes);
    taken += (bytes + 4095) & -4096L;
    return taken4k;
  }

  /** What the core sends. */
  private final class Output implements CoreOutput {
    @Override
    public void reply(int slot, int ring, Command reply) {
      lastReply.set(reply.opcode, reply.status, reply.requestId, reply.epoch, 0, 0);
      lastReply.data(reply.dataOffset, reply.dataLength, reply.generation);
      replies[ring].tryWrite(reply);
    }

    @Override
    public ByteRing.Producer replyBytes(int slot, int ring) {
      return replyBytes[ring];
    }

    @Override
    public void wakeRestore(int slot) {}

    @Override
    public void wakePublish(int slot) {}

    @Override
    public void sessionSettled(int slot) {
      settled = true;
    }

    @Override
    public void unregistered(int slot, int id) {}

    @Override
    public void violation(int slot, String what) {
      violated = true;
      session.end(what);
    }
  }

  // ---- set-up: blocks to restore, a lease on them, and the operations ----

  private static BlockHashes hashes(int first, int count) {
    byte[] bytes = new byte[HASH_BYTES * count];
    for (int i = 0; i < count; i++) {
      Memory.putLong(MemorySegment.ofArray(bytes), (long) HASH_BYTES * i, first + i + 1L);
    }
    return BlockHashes.of(bytes, HASH_BYTES);
  }

  private static int[] pageNumbers(int first, int count) {
    int[] numbers = new int[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = first + i;
    }
    return numbers;
  }

  private PublishOperation publishOf(int firstHash, int firstPage, int count) {
    int[] numbers = pageNumbers(firstPage, count);
    for (int page : numbers) {
      pages.asSlice((long) page * BLOCK_BYTES, BLOCK_BYTES).fill((byte) (page + 1));
    }
    Target.Builder target = new Target.Builder(groups, count);
    target.add(0, numbers);
    PublishItem item = new PublishItem(0, 0, null, hashes(firstHash, count), numbers);
    return new PublishOperation(
        session,
        new PublishSpan(registrationId, registrationGeneration, HASH_BYTES, List.of(item)),
        budget.charge(1, 1),
        Fence.done(),
        BOUND_NS,
        target.build(),
        arenas,
        tools);
  }

  private RestoreOperation restoreOf(Lease lease, int firstPage, int count) {
    int[] numbers = pageNumbers(firstPage, count);
    claims[0].claim(numbers);
    Target.Builder target = new Target.Builder(groups, count);
    target.add(0, numbers);
    return new RestoreOperation(
        session,
        new RestoreSpan(
            registrationId, registrationGeneration, List.of(RestoreItem.of(lease, numbers))),
        Fence.done(),
        BOUND_NS,
        target.build(),
        arenas,
        tools,
        claims,
        true);
  }

  private Lease lease(int count) {
    LookupRequest.writeHeader(data, 0, LookupRequest.PREFIX, HASH_BYTES, 1, count, 0, 0, 0, 1);
    MemorySegment bytes = hashes(0, count).bytes();
    MemorySegment.copy(bytes, 0, data, LookupRequest.hashesAt(1), bytes.byteSize());
    Command command = new Command().set(Opcode.LOOKUP, 0, 1, EPOCH, 0, 0);
    int length = (int) LookupRequest.byteSize(1, count, HASH_BYTES);
    core.execute(0, ChannelDescriptor.QUERY_REQUESTS, command, data, length, now);
    new ByteRing.Consumer(channel, ChannelDescriptor.QUERY_REPLIES).take(lastReply, data);
    long id = LookupReply.leaseId(data, LookupReply.leaseAt(0, 0, 1, count));
    return new Lease(id, EPOCH, 0, 0, count);
  }

  private void setUp() {
    if (scenario.restoreBlocks > 0) {
      operations.add(publishOf(0, 0, scenario.restoreBlocks));
      completeFairly();
      operations.clear();
      Lease lease = lease(scenario.restoreBlocks);
      leaseId = lease.id();
      restore = restoreOf(lease, 40, scenario.restoreBlocks);
      operations.add(restore);
    }
    if (scenario.publishBlocks > 0) {
      publish = publishOf(1000, 80, scenario.publishBlocks);
      operations.add(publish);
    }
    baseline = core.stats(now).residentBlocks();
    trace.clear();
  }

  // ---- what can happen ----

  /** Runs the world until the one who chooses ends it. */
  void run() {
    setUp();
    exploring = true;
    try {
      while (true) {
        check();
        List<Runnable> ways = engineWays();
        addManagerWays(ways);
        addFaults(ways);
        ways.get(choices.choose(ways.size(), hash(), this::checkEnd)).run();
      }
    } catch (AssertionError e) {
      throw new AssertionError(e.getMessage() + "; " + scenario + ", way: " + trace, e);
    } finally { // the address may be another world's next
      claims[0].release(pageNumbers(0, PAGES));
      claims[0].leave();
    }
  }

  @Override
  public void before(String access) {
    if (!exploring || engineDead) {
      return;
    }
    call = new StateHash().add(call).add(access.hashCode()).value();
    while (!engineDead) {
      check();
      List<Runnable> ways = engineWays();
      ways.addFirst(null);
      addDeaths(ways);
      int way = choices.choose(ways.size(), hash(), null);
      if (way == 0) {
        return;
      }
      ways.get(way).run();
    }
  }

  /** Either side may die between two accesses. */
  private void addDeaths(List<Runnable> ways) {
    if (faulted || !scenario.fault.endsWith("dies")) {
      return;
    }
    ways.add(() -> {
      faulted = true;
      note(scenario.fault);
      engineDead = scenario.fault.equals("engine dies");
      if (!engineDead) {
        throw new ManagerDied();
      }
    });
  }

  @Override
  public void read(long value) {
    if (exploring) {
      call = new StateHash().add(call).add(value).value();
    }
  }

  private List<Runnable> engineWays() {
    List<Runnable> ways = new ArrayList<>();
    for (int i = 0; i < operations.size() && !engineDead; i++) {
      int index = i;
      EngineOperation operation = operations.get(i);
      if (!operation.isSettled()) {
        ways.add(() -> step(index));
      }
      if (scenario.cancel && !cancelled[i] && !operation.isDone()) {
        ways.add(() -> cancel(index));
      }
    }
    return ways;
  }

  private boolean step(int index) {
    EngineOperation operation = operations.get(index);
    boolean moved = operation.step(now);
    while (phase(operation).equals("COPY") && operation.step(now)) {
      moved = true; // private work between two accesses
    }
    note("E" + index + " " + phase(operation));
    return moved;
  }

  private void note(String step) {
    if (exploring) {
      trace.add(step);
    }
  }

  private void cancel(int index) {
    cancelled[index] = true;
    note("cancel " + index);
    operations.get(index).cancel(Status.CANCELLED, "test");
  }

  private static String phase(EngineOperation operation) {
    return StateHash.field(operation, "phase").toString();
  }

  private void addManagerWays(List<Runnable> ways) {
    if (managerDead || settled) {
      ways.add(() -> session.end("the Manager is gone"));
      return;
    }
    ways.add(() -> managerCall("M commands", this::takeCommand));
    ways.add(() -> managerCall("M poll", () -> core.pollGrants(0, now)));
    if (rechecks) {
      ways.add(() -> managerCall("M recheck", () -> core.recheckGrants(0, now)));
    }
    if (socketEndSeen) {
      ways.add(() -> session.end("socket has ended"));
    }
    if (engineDead) {
      ways.add(() -> managerCall("M socket end", () -> core.sessionLost(0, now)));
      ways.add(() -> {
        exitSeen = true;
        managerCall("M exit", () -> core.processExited(0, now));
      });
    }
  }

  private void managerCall(String name, Runnable action) {
    note(name);
    call = name.hashCode();
    try {
      action.run();
    } catch (ManagerDied died) {
      managerDead = true;
    } finally {
      call = 0;
    }
  }

  private void takeCommand() {
    for (int ring :
        new int[] {ChannelDescriptor.QUERY_REQUESTS, ChannelDescriptor.PUBLISH_REQUESTS}) {
      Command command = new Command();
      if (requests[ring].tryRead(command)) {
        int length = command.dataLength == 0 ? 0 : requestBytes[ring].take(command, data);
        core.execute(0, ring, command, data, length, now);
        return;
      }
    }
  }

  private void addFaults(List<Runnable> ways) {
    if (faulted || scenario.fault.isEmpty()) {
      return;
    }
    ways.add(() -> {
      faulted = true;
      note(scenario.fault);
      fault();
    });
  }

  private void fault() {
    switch (scenario.fault) {
      case "manager dies" -> managerDead = true;
      case "engine dies" -> engineDead = true;
      case "socket ends" -> {
        socketEndSeen = true;
        managerCall("M socket end", () -> core.sessionLost(0, now));
      }
      case "socket end taken for exit" -> managerCall("M exit", () -> core.processExited(0, now));
      case "stop" -> managerCall("M stop", () -> core.beginStop(now));
      case "unregister" ->
          managerCall(
              "M unregister",
              () -> core.unregister(0, registrationId, registrationGeneration, now));
      case "repeat" -> repeatCommand();
      case "command lost" -> dropCommand();
      case "dirty bit lost" -> Memory.putLong(engineTable.memory(), DIRTY_OFFSET, 0);
      default -> throw new AssertionError(scenario.fault);
    }
  }

  /** Takes the next command as if it had never come. */
  private void dropCommand() {
    for (CommandRing.Consumer ring : requests) {
      if (ring != null && ring.tryRead(new Command())) {
        return;
      }
    }
  }

  /** Submits the command of the last operation once more, whatever its record says. */
  private void repeatCommand() {
    EngineOperation operation = operations.getLast();
    long id = operation.operationId();
    if (id >= 0) {
      repeated = true;
      session.trySubmit(operation.ring(), operation.opcode(), id, id, 0, operation.span());
    }
  }

  // ---- what must hold ----

  private Object coreOperation(EngineOperation operation) {
    Object[] sessions = (Object[]) StateHash.field(core, "sessions");
    if (sessions[0] == null || operation.operationId() < 0) {
      return null;
    }
    Object[] all = (Object[]) StateHash.field(sessions[0], "operations");
    return all[GrantWord.slotOf(operation.operationId())];
  }

  /** Rules that hold at every moment. */
  private void check() {
    require(!violated, "a well-behaved engine is said to have broken the protocol");
    for (EngineOperation operation : operations) {
      String phase = phase(operation);
      boolean mayTouch = phase.equals("READ") || phase.equals("COPY") || phase.equals("DRAIN");
      if (mayTouch && !managerDead && !exitSeen) {
        Object mine = coreOperation(operation);
        require(mine != null, "the session was settled while an operation may touch memory");
        String owned = StateHash.field(mine, "phase").toString();
        require(owned.equals("GRANTED"), "owners are released while Active: " + owned);
        long generation = (long) StateHash.field(mine, "generation");
        require(
            generation == GrantWord.generationOf(operation.operationId()),
            "the record is another operation's while Active");
      }
      require(!mayTouch || !operation.pagesFree(), "pages are free while Active");
    }
    CoreStats stats = core.stats(now);
    int whole = publish == null ? 0 : scenario.publishBlocks;
    boolean drainedWhole =
        publish != null
            && (boolean) StateHash.field(publish, "drained")
            && (int) StateHash.field(publish, "entriesDone") == whole;
    require(
        stats.residentBlocks() == baseline || drainedWhole,
        "blocks are visible before they are whole");
    int begun = restore == null ? 0 : 1;
    require(stats.restoresTotal() <= begun, "a restore was executed twice");
    require(
        stats.publishesTotal() <= (publish == null ? 0 : 1) + begun,
        "a publish was executed twice");
  }

  private static void require(boolean condition, String what) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }

  /**
   * From here every caller gets an answer and every budget returns to zero, without a fault more.
   */
  private void checkEnd() {
    exploring = false;
    completeFairly();
    for (int i = 0; i < operations.size() && !engineDead; i++) {
      EngineOperation operation = operations.get(i);
      require(operation.isDone(), "caller of operation " + i + " waits for ever");
      require(operation.isSettled(), "record of operation " + i + " is not given back");
      require(operation.pagesFree(), "pages of operation " + i + " are never free");
    }
    if (!engineDead) {
      checkResults();
      require(budget.operations() == 0, "a publish stays charged");
    }
    if (!managerDead) {
      checkBudgets();
    }
  }

  private void checkResults() {
    if (restore != null && restore.result().status() == Status.OK) {
      long bytes = (long) scenario.restoreBlocks * BLOCK_BYTES;
      require(
          MemorySegment.mismatch(
                  pages, 0, bytes, pages, 40L * BLOCK_BYTES, 40L * BLOCK_BYTES + bytes)
              == -1,
          "restored bytes differ");
    }
    if (publish != null && publish.result().status() == Status.OK && !managerDead) {
      require(
          core.stats(now).residentBlocks() == baseline + scenario.publishBlocks,
          "a publish that succeeded is not resident");
    }
  }

  private void checkBudgets() {
    if (restore != null && !engineDead && restore.result().status() != Status.OK) {
      session.releaseQuietly(leaseId); // a refusal leaves the lease to the caller
      takeCommand();
    }
    CoreStats stats = core.stats(now);
    require(stats.leases() == 0, "a lease is neither consumed nor given back");
    require(stats.pinRefs() == 0, "pins=" + stats.pinRefs() + " are left");
    require(stats.grantsActive() == 0, "operations=" + stats.grantsActive() + " are left");
    require(stats.unsealedBlocks() == 0, "unsealed blocks=" + stats.unsealedBlocks() + " are left");
    require(stats.poolUsedBytes() == stats.residentBytes(), "pool bytes are left");
    Object[] sessions = (Object[]) StateHash.field(core, "sessions");
    if (sessions[0] != null) {
      for (long word : (long[]) StateHash.field(StateHash.field(sessions[0], "bank"), "used")) {
        require(word == 0, "plan space is left");
      }
    }
    require(!engineDead || settled, "the slot of the dead engine's session is not free");
  }

  /** Both sides do all they can, in turns, without further faults. */
  private void completeFairly() {
    for (int round = 0; round < ROUNDS; round++) {
      now += ROUND_NS;
      for (int i = 0; i < operations.size() && !engineDead; i++) {
        if (!operations.get(i).isSettled()) {
          step(i);
        }
      }
      if (managerDead || settled || socketEndSeen) {
        session.end("the Manager is gone");
      }
      if (!managerDead) {
        takeCommand();
        if (engineDead) {
          core.processExited(0, now);
        }
        core.pollGrants(0, now);
        if (rechecks) {
          core.recheckGrants(0, now);
        }
      }
    }
  }

  // ---- canonical state ----

  private long hash() {
    StateHash hash = new StateHash().add(call);
    hash.add(managerDead ? 1 : 0).add(engineDead ? 1 : 0).add(faulted ? 1 : 0);
    hash.add(socketEndSeen ? 1 : 0).add(exitSeen ? 1 : 0).add(settled ? 1 : 0);
    hash.add(repeated ? 1 : 0).add(session.overReason() == null ? 0 : 1);
    for (int i = 0; i < operations.size(); i++) {
      EngineOperation operation = operations.get(i);
      hash.add(cancelled[i] ? 1 : 0).addFields(operation);
      long id = operation.operationId();
      if (id >= 0) {
        hash.add(engineTable.wordAcquire(GrantWord.slotOf(id)));
        hash.add(engineTable.status(GrantWord.slotOf(id)).code());
        hash.add(engineTable.engineStatus(GrantWord.slotOf(id)).code());
        hash.addFields(coreOperation(operation));
      }
    }
    for (int ring :
        new int[] {ChannelDescriptor.QUERY_REQUESTS, ChannelDescriptor.PUBLISH_REQUESTS}) {
      hash.add(pending(ring));
    }
    hash.add(Memory.getLongAcquire(engineTable.memory(), DIRTY_OFFSET));
    hashCore(hash);
    return hash.value();
  }

  private long pending(int ring) {
    Object producer =
        StateHash.field(
            session, ring == ChannelDescriptor.QUERY_REQUESTS ? "queries" : "publishes");
    long tail = (long) StateHash.field(StateHash.field(producer, "commands"), "tail");
    return tail - (long) StateHash.field(requests[ring], "head");
  }

  private void hashCore(StateHash hash) {
    Object[] sessions = (Object[]) StateHash.field(core, "sessions");
    Object mine = sessions[0];
    hash.add(mine == null ? 0 : 1);
    if (mine == null) {
      return;
    }
    for (String flag : new String[] {"lost", "exited"}) {
      hash.add((boolean) StateHash.field(mine, flag) ? 1 : 0);
    }
    boolean behind = (long) StateHash.field(mine, "drainsSeen") != engineTable.drainsAcquire();
    hash.add(behind ? 1 : 0);
    for (Object waiting : (ArrayDeque<?>) StateHash.field(mine, "waitingForBank")) {
      hash.add((int) StateHash.field(waiting, "slot"));
    }
    CoreStats stats = core.stats(now);
    hash.add(stats.pinRefs()).add(stats.residentBlocks()).add(stats.unsealedBlocks());
    hash.add(stats.leases()).add(stats.publishesTotal()).add(stats.restoresTotal());
  }
}
