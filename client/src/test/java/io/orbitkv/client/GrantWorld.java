package io.orbitkv.client;

import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Status;
import io.orbitkv.core.CoreStats;
import io.orbitkv.core.RetainedReason;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * Manager cores and engine sessions, all real, on plain memory of their own, and some operations
 * between them. Each access of a core to a grant table is a point at which that table's engine may
 * make steps; each step of an engine makes one access. What happens next is chosen by another.
 */
final class GrantWorld {
  private static final long ROUND_NS = 1_000_000;
  private static final int ROUNDS = 60;
  private static final long LONG_NS = 20_000_000_000L;
  private static final int SOURCE_PAGE = 0;

  /** Makes the Manager's view of the table; a weakened one breaks a rule. */
  interface TableMaker extends BiFunction<MemorySegment, SteppedTable.Watcher, SteppedTable> {}

  /** The Manager's table of a run and the engine's. */
  record Tables(TableMaker manager, Function<MemorySegment, GrantTable> engine) {
    /** Both as they are. */
    static Tables real() {
      return new Tables(SteppedTable::new, GrantTable::open);
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
  private final Set<String> reached;
  private final WorldMemory memory;
  private final List<WorldProcess> processes = new ArrayList<>();
  private final List<WorldSession> sessions = new ArrayList<>();
  private final List<WorldOperation> operations = new ArrayList<>();
  private final EnumSet<Scenario.Event> happened = EnumSet.noneOf(Scenario.Event.class);
  private final SaveBudget budget = new SaveBudget();
  private final ArrayDeque<String> trace = new ArrayDeque<>();
  private WorldManager manager;
  private long baseline;
  private long now = 1;
  private boolean exploring;

  /** Hash of the core's call under way: what it read so far; 0 between calls. */
  private long call;

  /**
   * A world at its start.
   *
   * @param reached takes the states of records, and how operations ended
   */
  GrantWorld(
      Scenario scenario, MemorySegment memory, Explorer.Choices choices, Set<String> reached) {
    this.scenario = scenario;
    this.choices = choices;
    this.reached = reached;
    this.memory = new WorldMemory(memory);
    manager = new WorldManager(this.memory, 5, this.memory.take(WorldManager.SLAB));
    for (int i = 0; i < scenario.ops.size(); i++) {
      operations.add(new WorldOperation(scenario.ops.get(i), i));
    }
  }

  static void require(boolean condition, String what) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }

  // ---- set-up ----

  private WorldSession openSession(WorldProcess process) {
    int index = sessions.size();
    WorldSession former = index == 0 ? null : sessions.getFirst();
    WorldSession session =
        new WorldSession(
            this, scenario, index, scenario.isObserved, manager, process, memory, former);
    sessions.add(session);
    for (WorldOperation operation : operations) {
      if (operation.op.session() == index) {
        operation.session = session;
      }
    }
    return session;
  }

  private WorldProcess newProcess() {
    WorldProcess process = new WorldProcess(memory);
    processes.add(process);
    return process;
  }

  private void setUp() {
    operations.stream().filter(each -> !each.op.publish()).forEach(each -> storeSource(each.op));
    openSession(newProcess());
    if (scenario.second == Scenario.Second.TOGETHER) {
      openSession(newProcess());
    }
    baseline = manager.core.stats(now).residentBlocks();
    takeLeases();
    trace.clear();
  }

  /** Publishes what an operation restores, in a session that ends then. */
  private void storeSource(Scenario.Op op) {
    Scenario.Op source = new Scenario.Op(true, 0, op.key(), SOURCE_PAGE, op.blocks());
    WorldOperation publish = new WorldOperation(source, 0);
    WorldSession through =
        new WorldSession(this, scenario, 0, true, manager, newProcess(), memory, null);
    publish.session = through;
    publish.tryBegin(scenario, budget);
    for (int round = 0; round < ROUNDS && !publish.engine.isSettled(); round++) {
      now += ROUND_NS;
      publish.engine.step(now);
      through.noteSubmitted(0);
      through.takeCommand(now);
      manager.core.pollGrants(through.slot, now);
    }
    require(publish.status() == Status.OK, "the source could not be stored");
    manager.core.sessionLost(through.slot, now);
    require(through.settled, "the source's session is not settled");
  }

  /** Asks for the leases that restores of open sessions want. */
  private void takeLeases() {
    for (WorldOperation operation : operations) {
      boolean wanted =
          !operation.op.publish() && operation.session != null && operation.lease == null;
      if (wanted) {
        operation.lease = asker(operation).lease(operation.op);
      }
    }
  }

  private WorldSession asker(WorldOperation operation) {
    return scenario.asker == 0 ? operation.session : sessions.get(scenario.asker);
  }

  // ---- what can happen ----

  /** Runs the world until the one who chooses ends it. */
  void run() {
    try {
      setUp();
      exploring = true;
      while (true) {
        List<Runnable> ways = new ArrayList<>();
        for (WorldSession session : sessions) {
          addEngineWays(session, ways);
          addManagerWays(session, ways);
        }
        addSecondSession(ways);
        addEvents(ways);
        choose(ways, true).run();
      }
    } catch (AssertionError | RuntimeException e) { // the core's own checks count too
      throw new AssertionError(e.getMessage() + "; " + scenario + ", way: " + trace, e);
    } finally {
      processes.forEach(WorldProcess::leave);
    }
  }

  private Runnable choose(List<Runnable> ways, boolean isQuiet) {
    int way =
        choices.choose(
            new Explorer.Moment() {
              @Override
              public int ways() {
                return ways.size();
              }

              @Override
              public long hash() {
                return hashNow();
              }

              @Override
              public void check() {
                checkNow();
              }

              @Override
              public boolean checkEnd() {
                if (isQuiet) {
                  checkGoodEnd();
                }
                return isQuiet;
              }
            });
    return ways.get(way);
  }

  /** The core's call under way comes to its next access to a table. */
  void before(WorldSession session, String access) {
    if (!exploring || session.process.dead) {
      return;
    }
    call = new StateHash().add(call).add(access.hashCode()).value();
    boolean[] goesOn = {false};
    while (!goesOn[0] && !session.process.dead) {
      List<Runnable> ways = new ArrayList<>();
      ways.add(() -> goesOn[0] = true);
      addEngineWays(session, ways);
      addDeaths(session, ways);
      choose(ways, false).run();
    }
  }

  /** The core's call under way has read something. */
  void read(long value) {
    if (exploring) {
      call = new StateHash().add(call).add(value).value();
    }
  }

  private void note(String step) {
    if (exploring) {
      trace.add(step);
    }
  }

  private void addEngineWays(WorldSession session, List<Runnable> ways) {
    if (session.process.dead) {
      return;
    }
    for (WorldOperation operation : operations) {
      if (operation.session == session) {
        addEngineWays(operation, ways);
      }
    }
    if (mustBeTold(session)) {
      ways.add(() -> tell(session));
    }
  }

  private void addEngineWays(WorldOperation operation, List<Runnable> ways) {
    if (!operation.isBegun()) {
      if (mayBegin(operation)) {
        ways.add(() -> begin(operation));
      }
      return;
    }
    if (mayStep(operation)) {
      ways.add(() -> step(operation));
    }
    if (scenario.cancels && !operation.cancelled && !operation.engine.isDone()) {
      ways.add(() -> cancel(operation));
    }
  }

  private boolean mayBegin(WorldOperation operation) {
    WorldSession session = operation.session;
    return !session.engine.isOver()
        && !session.withdrawing
        && (!scenario.oneRecord || session.engine.freeSlots() > 0);
  }

  private void begin(WorldOperation operation) {
    note("E begins " + operation.index);
    if (operation.tryBegin(scenario, budget)) {
      operation.engine.step(now);
    }
  }

  private boolean mayStep(WorldOperation operation) {
    boolean waits =
        scenario.is(Scenario.Weakness.WORKER_WAITS_FOR_ITS_PART)
            && operations.stream()
                .anyMatch(other ->
                    other != operation
                        && other.isBegun()
                        && !other.engine.isDone()
                        && (int) StateHash.field(other.engine, "covered") > 0);
    return !operation.engine.isSettled() && !waits;
  }

  private void step(WorldOperation operation) {
    boolean submitted = operation.engine.isSubmitted();
    boolean moved = operation.engine.step(now);
    while (moved && operation.phase().equals("COPY")) {
      moved = operation.engine.step(now); // private work between two accesses
    }
    operation.session.noteSubmitted(operation.index + (submitted ? 100 : 0));
    note("E " + operation.index + " " + operation.phase());
  }

  private void cancel(WorldOperation operation) {
    note("cancel " + operation.index);
    operation.cancelled = true;
    operation.engine.cancel(Status.CANCELLED, "test");
    if (scenario.is(Scenario.Weakness.CANCEL_ENDS_ACTIVE) && operation.isTouching()) {
      StateHash.call(operation.engine, "complete", Status.CANCELLED, "test");
    }
  }

  private boolean mustBeTold(WorldSession session) {
    return (session.lossSeen || session.manager.dead)
        && session.engine.overReason() == null
        && !scenario.is(Scenario.Weakness.ENGINE_IS_NOT_TOLD);
  }

  private void tell(WorldSession session) {
    note("E" + session.index + " told");
    session.engine.end("over");
    for (WorldOperation operation : operations) {
      boolean ends =
          scenario.is(Scenario.Weakness.SESSION_END_ENDS_ACTIVE)
              && operation.isBegun()
              && operation.session == session;
      if (ends) {
        StateHash.call(operation.engine, "complete", Status.SESSION_ENDED, "over");
      }
    }
  }

  private boolean isRead(WorldSession session) {
    return !session.lossSeen || !scenario.is(Scenario.Weakness.CLOSED_SESSION_IS_NOT_READ);
  }

  private void addManagerWays(WorldSession session, List<Runnable> ways) {
    if (!session.isServed()) {
      return;
    }
    int slot = session.slot;
    if (session.hasCommand() && !session.lossSeen) {
      ways.add(() -> managerCall(session, "command", () -> session.takeCommand(now)));
    }
    if (session.hasUnreadDrains() && isRead(session)) {
      ways.add(
          () -> managerCall(session, "poll", () -> session.manager.core.pollGrants(slot, now)));
    }
    if (scenario.rechecks && mayRecheck(session)) {
      ways.add(() ->
          managerCall(session, "recheck", () -> session.manager.core.recheckGrants(slot, now)));
    }
    if (session.process.dead && !session.lossSeen) {
      ways.add(() -> lose(session));
    }
    if (session.process.dead && scenario.isObserved && !session.exitSeen) {
      ways.add(() -> seeExit(session));
    }
    if (session.withdrawing && scenario.registersAgain && session.withdrawn) {
      ways.add(() -> registerAgain(session));
    }
  }

  private boolean mayRecheck(WorldSession session) {
    return isRead(session) && !scenario.is(Scenario.Weakness.NO_RECHECK);
  }

  private void managerCall(WorldSession session, String name, Runnable action) {
    note("M" + session.index + " " + name);
    call = new StateHash().add(session.index).add(name.hashCode()).value();
    try {
      action.run();
    } catch (ManagerDied died) {
      session.manager.dead = true;
    } finally {
      call = 0;
    }
  }

  private void lose(WorldSession session) {
    session.lossSeen = true;
    managerCall(
        session,
        "socket end",
        () -> {
          if (scenario.is(Scenario.Weakness.PINS_STAY_WITH_THE_ASKER)) {
            dropPinsOfAsker(session);
          }
          session.manager.core.sessionLost(session.slot, now);
        });
  }

  private void dropPinsOfAsker(WorldSession session) {
    for (WorldOperation operation : operations) {
      if (!operation.op.publish() && scenario.asker == session.index && operation.isHeldByCore()) {
        int[] rows = (int[]) StateHash.field(operation.core(), "rows");
        for (int i = 0; i < operation.op.blocks(); i++) {
          session.manager.unpin(rows[i]);
        }
      }
    }
  }

  private void seeExit(WorldSession session) {
    session.lossSeen = true;
    session.exitSeen = true;
    managerCall(session, "exit", () -> session.manager.core.processExited(session.slot, now));
  }

  private void registerAgain(WorldSession session) {
    note("E registers again");
    session.register(scenario);
  }

  // ---- the second session ----

  private void addSecondSession(List<Runnable> ways) {
    if (mayConnect()) {
      ways.add(this::connect);
    }
  }

  private boolean mayConnect() {
    WorldSession first = sessions.getFirst();
    return sessions.size() == 1
        && switch (scenario.second) {
          case NONE, TOGETHER -> false;
          case OTHER_PROCESS -> first.settled && !manager.dead;
          case SAME_PROCESS ->
              first.engine.isOver() && first.lossSeen && !manager.dead && !first.process.dead;
          case RESTART -> manager.dead && !first.process.dead;
        };
  }

  private void connect() {
    note("session 1 begins");
    boolean was = exploring;
    exploring = false;
    WorldProcess process = sessions.getFirst().process;
    switch (scenario.second) {
      case OTHER_PROCESS -> process = newProcess();
      case RESTART -> {
        boolean adopts = scenario.is(Scenario.Weakness.OLD_ARENAS_ARE_ADOPTED);
        MemorySegment arena = adopts ? manager.arena : memory.take(WorldManager.SLAB);
        manager = new WorldManager(memory, manager.epoch + 1, arena);
        baseline = 0;
      }
      default -> {}
    }
    openSession(process);
    if (!manager.stopping) {
      takeLeases();
    }
    exploring = was;
  }

  // ---- events ----

  private boolean mayHappen(Scenario.Event event) {
    return scenario.events.contains(event)
        && !happened.contains(event)
        && happened.size() < scenario.maxEvents;
  }

  /** Either side of the session may die between two accesses. */
  private void addDeaths(WorldSession session, List<Runnable> ways) {
    Scenario.Event death =
        session.index == 0 ? Scenario.Event.ENGINE_0_DIES : Scenario.Event.ENGINE_1_DIES;
    if (mayHappen(death)) {
      ways.add(() -> happen(death, () -> die(session.process)));
    }
    if (mayHappen(Scenario.Event.MANAGER_DIES)) {
      ways.add(() ->
          happen(
              Scenario.Event.MANAGER_DIES,
              () -> {
                throw new ManagerDied();
              }));
    }
  }

  private void happen(Scenario.Event event, Runnable what) {
    happened.add(event);
    note(event.name());
    what.run();
  }

  private void die(WorldProcess process) {
    process.dead = true;
    for (WorldOperation operation : operations) {
      operation.activeAtDeath |=
          operation.session != null && operation.session.process == process && operation.isActive();
    }
  }

  private void addEvents(List<Runnable> ways) {
    for (Scenario.Event event : scenario.events) {
      if (!mayHappen(event)) {
        continue;
      }
      if (event == Scenario.Event.COMMAND_REPEATED) {
        addRepeats(ways);
      } else if (isPossible(event)) {
        ways.add(() -> happen(event, () -> make(event)));
      }
    }
  }

  private WorldSession sessionOf(Scenario.Event event) {
    int index =
        switch (event) {
          case SOCKET_1_ENDS, ENGINE_1_DIES -> 1;
          default -> 0;
        };
    return index < sessions.size() ? sessions.get(index) : null;
  }

  private boolean isPossible(Scenario.Event event) {
    WorldSession session = sessionOf(event);
    if (session == null) {
      return false;
    }
    return switch (event) {
      case SOCKET_0_ENDS, SOCKET_1_ENDS -> session.isServed() && !session.lossSeen;
      case ENGINE_0_DIES, ENGINE_1_DIES -> !session.process.dead;
      case UNREGISTER -> session.isServed() && !session.lossSeen && !session.process.dead;
      case COMMAND_LOST -> session.isServed() && session.hasCommand();
      case LEASE_ENDS -> session.isServed() && !session.lossSeen;
      case MANAGER_DIES, MANAGER_STOPS, CLEAR, TIME_PASSES -> !manager.dead;
      case DIRTY_BIT_LOST -> true;
      case COMMAND_REPEATED -> false;
    };
  }

  private void make(Scenario.Event event) {
    WorldSession session = sessionOf(event);
    switch (event) {
      case SOCKET_0_ENDS, SOCKET_1_ENDS -> {
        if (scenario.is(Scenario.Weakness.SOCKET_END_IS_EXIT)) {
          session.lossSeen = true;
          managerCall(session, "exit", () -> session.manager.core.processExited(session.slot, now));
        } else {
          lose(session);
        }
      }
      case ENGINE_0_DIES, ENGINE_1_DIES -> die(session.process);
      case MANAGER_DIES -> manager.dead = true;
      case MANAGER_STOPS -> {
        manager.stopping = true;
        managerCall(session, "stop", () -> manager.core.beginStop(now));
      }
      case UNREGISTER -> unregister(session);
      case COMMAND_LOST -> session.dropCommand();
      case DIRTY_BIT_LOST -> session.loseDirtyBits();
      case CLEAR -> clear();
      case LEASE_ENDS -> operations.forEach(operation -> release(operation));
      case TIME_PASSES -> managerCall(session, "tick", () -> manager.core.tick(now + LONG_NS));
      case COMMAND_REPEATED -> throw new AssertionError(event);
    }
  }

  private void unregister(WorldSession session) {
    session.withdrawing = true;
    managerCall(
        session,
        "unregister",
        () -> {
          if (scenario.is(Scenario.Weakness.UNREGISTER_DOES_NOT_WAIT)) {
            session.forgetOperations();
          }
          manager.core.unregister(
              session.slot, session.registration.id(), session.registration.generation(), now);
        });
  }

  private void clear() {
    for (WorldOperation operation : operations) {
      operation.cleared = operation.op.publish() && operation.isHeldByCore();
    }
    manager.core.clear(null, now);
  }

  private void release(WorldOperation operation) {
    if (operation.lease != null && asker(operation).isServed()) {
      asker(operation).release(operation.lease, now);
    }
  }

  /** An operation's command may come once more, whatever its record says. */
  private void addRepeats(List<Runnable> ways) {
    for (WorldOperation operation : operations) {
      if (operation.hasRecord() && !operation.session.process.dead) {
        ways.add(() -> happen(Scenario.Event.COMMAND_REPEATED, () -> repeat(operation)));
      }
    }
  }

  private void repeat(WorldOperation operation) {
    operation.repeated = true;
    long id = operation.engine.operationId();
    operation.session.engine.trySubmit(
        operation.engine.ring(), operation.engine.opcode(), id, id, 0, operation.engine.span());
    operation.session.noteSubmitted(operation.index);
  }

  // ---- what must hold ----

  /** Rules that hold at every moment. */
  private void checkNow() {
    for (WorldSession session : sessions) {
      require(!session.violated, "a well-behaved engine is said to have broken the protocol");
    }
    for (WorldOperation operation : operations) {
      if (!operation.isBegun()) {
        continue;
      }
      if (operation.hasRecord()) {
        reached.add(String.valueOf(GrantWord.state(operation.word())));
      }
      if (operation.isTouching()) {
        checkTouching(operation);
      }
    }
    checkBlocks();
  }

  private void checkTouching(WorldOperation operation) {
    WorldSession session = operation.session;
    require(!operation.engine.pagesFree(), "pages are free while Active");
    for (WorldOperation other : operations) {
      boolean samePages =
          other != operation
              && other.isTouching()
              && other.session.process == session.process
              && other.op.page() == operation.op.page();
      require(!samePages, "two operations touch the same pages");
    }
    boolean proven = session.exitSeen && scenario.exitProves;
    if (!session.manager.dead && !proven) {
      require(!session.withdrawn, "unregister returned while an operation may touch memory");
      operation.requireOwned();
    }
  }

  private void checkBlocks() {
    CoreStats stats = manager.core.stats(now);
    long whole =
        operations.stream()
            .filter(operation -> operation.op.publish() && operation.hasDrainedWhole())
            .mapToLong(operation -> operation.op.key())
            .distinct()
            .count();
    long blocks = operations.stream().mapToLong(each -> each.op.blocks()).max().orElseThrow();
    require(
        stats.residentBlocks() <= baseline + whole * blocks,
        "blocks are visible before they are whole");
    long restores = operations.stream().filter(each -> !each.op.publish()).count();
    require(stats.restoresTotal() <= restores, "a restore was executed twice");
    long publishes = operations.size(); // with those that have stored what is restored
    require(stats.publishesTotal() <= publishes, "a publish was executed twice");
  }

  /** From here every caller gets an answer and every budget returns to zero, without an event. */
  private void checkGoodEnd() {
    exploring = false;
    completeFairly();
    for (WorldOperation operation : operations) {
      if (operation.isBegun() && !operation.session.process.dead) {
        checkCaller(operation);
      }
    }
    if (processes.stream().noneMatch(process -> process.dead)) {
      require(budget.operations() == 0, "a publish stays charged");
    }
    if (!manager.dead) {
      checkManager();
    }
  }

  private void checkCaller(WorldOperation operation) {
    String which = "operation " + operation.index;
    require(operation.engine.isDone(), "caller of " + which + " waits for ever");
    require(operation.engine.isSettled(), "record of " + which + " is not given back");
    require(operation.engine.pagesFree(), "pages of " + which + " are never free");
    Status status = operation.status();
    reached.add("operation " + operation.index + " " + status);
    boolean isWhole = status == Status.OK && operation.session.manager == manager;
    if (isWhole && !operation.op.publish()) {
      require(
          samePagesAsLater(operation) || operation.session.process.holds(operation.op),
          "restored bytes differ");
    }
  }

  /** Another operation of the process has these pages too. */
  private boolean samePagesAsLater(WorldOperation operation) {
    return operations.stream()
        .anyMatch(other -> other != operation && other.op.page() == operation.op.page());
  }

  private void checkManager() {
    Set<Byte> visible = manager.visible();
    for (WorldOperation operation : operations) {
      if (operation.op.publish() && operation.isBegun() && operation.session.manager == manager) {
        checkPublished(operation, visible);
      }
    }
    if (manager.core.stats(now).grantsActive() > 0) {
      checkRetained();
      return;
    }
    checkBudgets();
  }

  private void checkPublished(WorldOperation operation, Set<Byte> visible) {
    boolean isThere = visible.contains(WorldProcess.pattern(operation.op.key()));
    boolean isCleared = happened.contains(Scenario.Event.CLEAR);
    require(!operation.cleared || !isThere, "blocks are visible after clear");
    boolean isStored =
        !operation.session.process.dead && operation.status() == Status.OK && !isCleared;
    require(!isStored || isThere, "a publish that succeeded is not resident");
  }

  /** What is left is what a copy that nobody can see the end of may still touch. */
  private void checkRetained() {
    CoreStats stats = manager.core.stats(now);
    long explained =
        scenario.exitProves ? 0 : operations.stream().filter(each -> each.activeAtDeath).count();
    require(stats.grantsActive() == explained, "operations=" + stats.grantsActive() + " are left");
    require(stats.retainedOperations() == explained, "what is retained is not told");
    RetainedReason reason =
        scenario.isObserved ? RetainedReason.DEVICE : RetainedReason.NOT_OBSERVED;
    for (CoreStats.Retained retained : stats.retained()) {
      require(retained.reason() == reason, "retained for " + retained.reason());
    }
    reached.add("retained " + reason);
  }

  private void checkBudgets() {
    operations.forEach(this::release); // a refusal leaves the lease to the caller
    CoreStats stats = manager.core.stats(now);
    require(stats.leases() == 0, "a lease is neither consumed nor given back");
    require(stats.pinRefs() == 0, "pins=" + stats.pinRefs() + " are left");
    require(stats.unsealedBlocks() == 0, "unsealed blocks=" + stats.unsealedBlocks() + " are left");
    require(stats.poolUsedBytes() == stats.residentBytes(), "pool bytes are left");
    for (WorldSession session : sessions) {
      if (session.manager == manager && session.coreSession() != null) {
        require(session.isBankFree(scenario), "plan space is left");
        require(!session.lossSeen, "the slot of a session that is over is not free");
      }
    }
  }

  /** All sides do all they can, in turns, without further events. */
  private void completeFairly() {
    for (int round = 0; round < ROUNDS && !isOver(); round++) {
      now += ROUND_NS;
      if (mayConnect()) {
        connect();
      }
      for (WorldSession session : List.copyOf(sessions)) {
        stepEngine(session);
        serve(session);
      }
    }
  }

  private boolean isOver() {
    boolean enginesRest =
        operations.stream()
            .allMatch(each ->
                each.session == null
                    || each.session.process.dead
                    || (each.isBegun() ? each.engine.isSettled() : !mayBegin(each)));
    boolean managerRests =
        manager.dead
            || sessions.stream()
                .allMatch(each -> !each.isServed() || (!each.hasCommand() && !each.lossSeen));
    boolean isTold = sessions.stream().noneMatch(this::mustBeTold);
    return enginesRest
        && managerRests
        && isTold
        && !mayConnect()
        && manager.core.stats(now).grantsActive() == 0;
  }

  private void stepEngine(WorldSession session) {
    if (session.process.dead) {
      return;
    }
    if (mustBeTold(session)) {
      tell(session);
    }
    for (WorldOperation operation : operations) {
      if (operation.session == session && !operation.isBegun() && mayBegin(operation)) {
        begin(operation);
      } else if (operation.session == session && operation.isBegun() && mayStep(operation)) {
        step(operation);
      }
    }
  }

  private void serve(WorldSession session) {
    if (!session.isServed()) {
      return;
    }
    if (session.process.dead && !session.lossSeen) {
      lose(session);
    }
    if (session.process.dead && scenario.isObserved && !session.exitSeen) {
      seeExit(session);
    }
    if (!session.lossSeen) {
      session.takeCommand(now);
    }
    if (isRead(session)) {
      session.manager.core.pollGrants(session.slot, now);
    }
    if (mayRecheck(session)) {
      session.manager.core.recheckGrants(session.slot, now);
    }
    if (session.withdrawn && scenario.registersAgain && session.isServed() && !session.lossSeen) {
      registerAgain(session);
    }
    session.manager.core.tick(now);
  }

  // ---- canonical state ----

  private long hashNow() {
    StateHash hash = new StateHash().add(call).add(manager.epoch);
    for (Scenario.Event event : happened) {
      hash.add(event.name().hashCode());
    }
    sessions.forEach(session -> session.addTo(hash));
    operations.forEach(operation -> operation.addTo(hash));
    manager.addBytes(hash);
    processes.forEach(process -> operations.forEach(each -> hash.add(process.first(each.op))));
    CoreStats stats = manager.core.stats(now);
    hash.add(stats.pinRefs()).add(stats.residentBlocks()).add(stats.unsealedBlocks());
    hash.add(stats.leases()).add(stats.publishesTotal()).add(stats.restoresTotal());
    hash.add(stats.registrations()).add(stats.retainedOperations());
    return hash.value();
  }
}
