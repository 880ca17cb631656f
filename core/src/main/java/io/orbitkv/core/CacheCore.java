package io.orbitkv.core;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The deterministic state machine that owns all cache state of one Manager: pool, block index,
 * leases, registrations and grants. It belongs to one thread, the control thread, and has no clock,
 * thread, randomness or I/O: commands, session events and the time come in as arguments, effects go
 * out through {@link CoreOutput}. Times are nanoseconds of one monotonic clock.
 */
public final class CacheCore {
  private static final int SWEEP_ROWS_A_TICK = 8192;

  private final CoreOutput output;
  private final long epochLow;
  private final IntArrays arrays = new IntArrays();
  private final Namespaces namespaces = new Namespaces();
  private final BlockStore store;
  private final Leases leases;
  private final Registrations registrations = new Registrations();
  private final Operations operations;
  private final Pressure pressure;
  private final Lookups lookups;
  private final SsdTier ssd; // null without one
  private final Map<String, Instance> instances = new HashMap<>();
  private final Session[] sessions = new Session[Protocol.MAX_SESSIONS];
  private final boolean[] reserved = new boolean[Protocol.MAX_SESSIONS];
  private final Command reply = new Command();
  private long violations;
  private boolean sweeping;
  private int sweepRow;
  private int sweepLeft;

  /**
   * Creates a core with an empty pool.
   *
   * @param epochLow low half of the Manager epoch; commands of another one are refused
   */
  public CacheCore(CoreConfig config, long epochLow, CoreOutput output) {
    this(config, epochLow, output, null, null);
  }

  /**
   * Creates a core with an SSD tier.
   *
   * @param ssdConfig null for none
   * @param port its files
   */
  public CacheCore(
      CoreConfig config, long epochLow, CoreOutput output, SsdConfig ssdConfig, SsdPort port) {
    this.output = output;
    this.epochLow = epochLow;
    this.store = new BlockStore(config, namespaces);
    this.ssd =
        ssdConfig == null ? null : new SsdTier(ssdConfig, port, store, namespaces, config.memory());
    this.store.setSsd(ssd);
    this.leases = new Leases(config, store, arrays);
    this.operations = new Operations(config, store, leases, arrays, output, this::operationSettled);
    this.pressure = new Pressure(store, operations);
    this.lookups = new Lookups(config, store, leases, namespaces, arrays, output, ssd);
  }

  // ---- sessions ----

  /** Takes a free session slot, or returns -1 when all are live or retained. */
  public int reserveSlot() {
    for (int slot = 0; slot < reserved.length; slot++) {
      if (!reserved[slot]) {
        reserved[slot] = true;
        return slot;
      }
    }
    return -1;
  }

  /** Gives back a slot whose session was never opened. */
  public void releaseSlot(int session) {
    if (sessions[session] != null) {
      throw new IllegalStateException("slot=" + session + " holds a session");
    }
    reserved[session] = false;
  }

  /**
   * Opens a session on a reserved slot.
   *
   * @param table the session's fresh grant memory
   * @param instanceId instance that the engine belongs to
   * @param client name that the client gave itself, for the status
   * @param pid process of the engine, for messages
   * @param mayPublish false when the end of the engine's process can not be observed
   */
  public void openSession(
      int session,
      GrantTable table,
      String instanceId,
      String client,
      int pid,
      boolean mayPublish,
      long nowNs) {
    if (!reserved[session] || sessions[session] != null) {
      throw new IllegalStateException("slot=" + session + " is not reserved");
    }
    Instance instance = instances.computeIfAbsent(instanceId, Instance::new);
    instance.sessions++;
    sessions[session] = new Session(session, table, instance, client, pid, mayPublish);
  }

  private Session session(int slot) {
    Session session = sessions[slot];
    if (session == null) {
      throw new CoreException(Status.SESSION_ENDED, "session slot=" + slot + " holds no session");
    }
    return session;
  }

  /** The socket of the session has ended. */
  public void sessionLost(int session, long nowNs) {
    Session lost = sessions[session];
    if (lost == null || lost.lost) {
      return;
    }
    lost.lost = true;
    lost.lostNs = nowNs;
    leases.endAsker(lost);
    inspectAll(lost, nowNs);
    settleIfDone(lost);
  }

  /** The pidfd of the session's engine has reported exit, and it is evidence. */
  public void processExited(int session, long nowNs) {
    Session exited = sessions[session];
    if (exited == null) {
      return;
    }
    exited.exited = true;
    sessionLost(session, nowNs);
    if (sessions[session] == exited) {
      inspectAll(exited, nowNs);
      settleIfDone(exited);
    }
  }

  private void settleIfDone(Session session) {
    if (!session.lost || session.unsettled > 0 || sessions[session.slot] != session) {
      return;
    }
    for (Registration registration : List.copyOf(session.registrations)) {
      registrations.remove(registration);
    }
    if (--session.instance.sessions == 0) {
      instances.remove(session.instance.id);
    }
    sessions[session.slot] = null;
    reserved[session.slot] = false;
    output.sessionSettled(session.slot);
  }

  // ---- registrations ----

  /**
   * Registers memory of an instance.
   *
   * @return registration id and generation; it serves commands once {@link #confirmMappings} was
   *     called
   * @throws CoreException naming the value and the rule
   */
  public RegistrationId register(int session, RegistrationRequest request, long nowNs) {
    Session owner = session(session);
    if (owner.lost) {
      throw new CoreException(Status.SESSION_ENDED, "session slot=" + session + " is over");
    }
    Namespaces.Namespace namespace = namespaces.intern(request, store.pool());
    Registration registration = registrations.add(owner, namespace, request);
    return new RegistrationId(registration.id, registration.generation);
  }

  /** Id and generation of a registration. */
  public record RegistrationId(int id, int generation) {}

  /** The engine has mapped the arenas: the registration is complete. */
  public void confirmMappings(int session, int registrationId, int generation) {
    registration(session, registrationId, generation).confirmed = true;
  }

  /**
   * Withdraws a registration; {@link CoreOutput#unregistered} follows, perhaps within this call.
   */
  public void unregister(int session, int registrationId, int generation, long nowNs) {
    Registration registration = registration(session, registrationId, generation);
    registration.closing = true;
    inspectAll(registration.session, nowNs);
    withdrawIfDone(registration);
  }

  private Registration registration(int session, int id, int generation) {
    Registration registration = registrations.get(session(session), id, generation);
    if (registration == null) {
      throw new CoreException(
          Status.UNKNOWN_REGISTRATION,
          "registration=" + id + ", generation=" + generation + " is not of this session");
    }
    return registration;
  }

  private void withdrawIfDone(Registration registration) {
    boolean live = registration.session.registrations.contains(registration);
    if (registration.closing && registration.unsettled == 0 && live) {
      registrations.remove(registration);
      output.unregistered(registration.session.slot, registration.id);
    }
  }

  private void operationSettled(Operation op) {
    if (op.registration != null) {
      withdrawIfDone(op.registration);
    }
  }

  // ---- commands ----

  /**
   * Executes one command.
   *
   * @param ring request ring that it came from
   * @param command copied out of the ring
   * @param data private copy of the command's data, from offset 0
   * @param length bytes of the data
   */
  public void execute(
      int session, int ring, Command command, MemorySegment data, int length, long nowNs) {
    Session from = sessions[session];
    if (from == null || from.lost) {
      return;
    }
    operations.setNow(nowNs);
    try {
      dispatch(from, ring, command, data, length, nowNs);
    } catch (ProtocolException e) {
      violate(from, e.getMessage(), nowNs);
    }
  }

  private void dispatch(
      Session from, int ring, Command command, MemorySegment data, int length, long nowNs) {
    if (command.version != Protocol.CHANNEL_VERSION) {
      throw new ProtocolException(
          Status.VERSION_MISMATCH,
          "command: version="
              + command.version
              + ", this side has version="
              + Protocol.CHANNEL_VERSION);
    }
    int replyRing =
        ring == ChannelDescriptor.PUBLISH_REQUESTS
            ? ChannelDescriptor.PUBLISH_REPLIES
            : ChannelDescriptor.QUERY_REPLIES;
    if (command.epoch != epochLow) {
      answer(from, replyRing, command, Status.EPOCH_MISMATCH);
      return;
    }
    switch (command.opcode) {
      case Opcode.PING -> answer(from, replyRing, command, Status.OK);
      case Opcode.LOOKUP -> lookups.execute(from, command, data, length, nowNs, reply);
      case Opcode.RESTORE -> operations.claimRestore(from, command, data, length, registrations);
      case Opcode.PUBLISH -> operations.claimPublish(from, command, data, length, registrations);
      case Opcode.RELEASE -> answer(from, replyRing, command, release(from, command.scalar0));
      case Opcode.CANCEL_QUERY -> {
        answer(from, replyRing, command, cancelQuery(from, command.scalar0, (int) command.scalar1));
      }
      default ->
          throw new ProtocolException(
              Status.INVALID, "command: opcode=" + command.opcode + " is unknown");
    }
  }

  private Status cancelQuery(Session from, long queryId, int revision) {
    if (queryId == 0) { // the id of lookups without identity
      return Status.INVALID;
    }
    leases.endQuery(from, queryId, revision);
    return Status.OK;
  }

  private Status release(Session from, long leaseId) {
    Lease lease = leases.find(leaseId);
    if (lease == null || lease.instance != from.instance) {
      return Status.LEASE_ENDED;
    }
    leases.end(lease);
    return Status.OK;
  }

  private void answer(Session to, int ring, Command command, Status status) {
    reply.set(
        command.opcode,
        status.code(),
        command.requestId,
        epochLow,
        command.scalar0,
        command.scalar1);
    output.reply(to.slot, ring, reply);
  }

  private void violate(Session session, String what, long nowNs) {
    violations++;
    for (Operation op : session.operations) {
      if (op != null) {
        operations.distrust(op);
      }
    }
    session.waitingForBank.clear();
    output.violation(session.slot, what);
    sessionLost(session.slot, nowNs);
  }

  // ---- grants ----

  /**
   * Takes in what engines have left in dirty records of a session; returns how much work was done.
   */
  public int pollGrants(int session, long nowNs) {
    Session from = sessions[session];
    if (from == null) {
      return 0;
    }
    long drains = from.table.drainsAcquire();
    if (drains == from.drainsSeen) {
      return 0;
    }
    from.drainsSeen = drains;
    operations.setNow(nowNs);
    int work = 0;
    try {
      for (int word = 0; word < GrantTable.DIRTY_WORDS; word++) {
        for (long dirty = from.table.takeDirty(word); dirty != 0; dirty &= dirty - 1) {
          Operation op = from.operations[64 * word + Long.numberOfTrailingZeros(dirty)];
          work += op != null && operations.inspect(op) ? 1 : 0;
        }
      }
    } catch (ProtocolException e) {
      violate(from, e.getMessage(), nowNs);
      return work + 1;
    }
    settleIfDone(from);
    return work;
  }

  /**
   * Reads the state of every record in use by a session, dirty or not; returns how much work was
   * done.
   */
  public int recheckGrants(int session, long nowNs) {
    Session from = sessions[session];
    if (from == null) {
      return 0;
    }
    int work = inspectAll(from, nowNs);
    settleIfDone(from);
    return work;
  }

  private int inspectAll(Session session, long nowNs) {
    operations.setNow(nowNs);
    int work = 0;
    for (int slot = 0; session.unsettled > 0 && slot < session.operations.length; slot++) {
      Operation op = session.operations[slot];
      if (op == null) {
        continue;
      }
      try {
        work += operations.inspect(op) ? 1 : 0;
      } catch (ProtocolException e) {
        violate(session, e.getMessage(), nowNs);
        work++;
      }
    }
    return work;
  }

  /**
   * True while the core holds the blocks of an operation that it has granted to an engine: it may
   * not until it has evidence that the engine does not touch them.
   */
  public boolean holdsGranted(int session, long operationId) {
    Session of = sessions[session];
    Operation op = of == null ? null : of.operations[GrantWord.slotOf(operationId)];
    return op != null
        && op.generation == GrantWord.generationOf(operationId)
        && op.phase != Operation.Phase.SETTLED
        && op.phase != Operation.Phase.PREPARED;
  }

  /**
   * Counts everything again from its owners.
   *
   * @throws IllegalStateException naming the first thing that does not agree
   */
  public void requireBalanced() {
    new Balance(store, leases, sessions, ssd == null).require();
  }

  // ---- SSD tier ----

  /** Takes in what the files hold; before the first command. */
  public SsdRecovery ssdRecovery() {
    return ssd;
  }

  /**
   * A request to the {@link SsdPort} is done.
   *
   * @param result one of the port's results
   */
  public void ssdCompleted(int request, int result, long nowNs) {
    ssd.completed(request, result, nowNs);
  }

  /**
   * Goes on with what waits in the SSD tier, for a bounded time; returns how much work was done.
   */
  public int ssdStep(long nowNs) {
    return ssd.step(nowNs);
  }

  /** True while the SSD tier has work that no completion will announce. */
  public boolean ssdIsBusy() {
    return ssd != null && ssd.isBusy();
  }

  /** Wants what is resident on SSD, for a stop. */
  public void beginSsdFlush() {
    ssd.beginFlush();
  }

  /** True once everything that was wanted is on SSD. */
  public boolean isSsdFlushed() {
    return ssd.isFlushed();
  }

  // ---- clear ----

  /** What a clear took away: blocks that lookups found. */
  public record Cleared(
      int namespaces, long dramBlocks, long dramBytes, long ssdBlocks, long ssdBytes) {}

  /**
   * Removes a namespace, or everything, from every tier: at once no lookup finds its blocks, and
   * publishes and loads in progress store nothing. Leases in use stay valid.
   *
   * @param digest the namespace; null for every one
   * @throws CoreException when too many former clears are not on disk yet
   */
  public Cleared clear(byte[] digest, long nowNs) {
    if (ssd != null && ssd.clearsWaiting() == SsdClears.MAX_WAITING) {
      throw new CoreException(
          Status.LIMIT,
          "clears that wait to be written to SSD="
              + SsdClears.MAX_WAITING
              + ", which is the limit: its files do not take writes");
    }
    MemorySegment wanted = digest == null ? null : MemorySegment.ofArray(digest);
    List<Namespaces.Namespace> meant =
        digest == null ? namespaces.all() : namespacesWith(namespaces.find(wanted, 0));
    long dramBlocks = 0;
    long dramBytes = 0;
    long ssdBlocks = 0;
    long ssdBytes = 0;
    for (Namespaces.Namespace namespace : meant) {
      for (Namespaces.Space space : namespace.spaces) {
        if (space != null) {
          dramBlocks += space.residentBlocks;
          dramBytes += space.residentBlocks * space.size.slotBytes;
          ssdBlocks += space.ssdBlocks;
          ssdBytes += space.ssdBlocks * space.blockBytes;
        }
      }
      namespaces.clear(namespace);
    }
    sweepRow = 0;
    sweepLeft = 0;
    sweeping = true;
    if (ssd != null) {
      ssd.clear(wanted, nowNs);
    }
    return new Cleared(meant.size(), dramBlocks, dramBytes, ssdBlocks, ssdBytes);
  }

  private static List<Namespaces.Namespace> namespacesWith(Namespaces.Namespace one) {
    return one == null ? List.of() : List.of(one);
  }

  /** True once a clear would outlive the process. */
  public boolean areClearsDurable() {
    return ssd == null || ssd.clearsWaiting() == 0;
  }

  /** Frees a bounded part of what was cleared; what is in use is looked at again. */
  private void sweep() {
    sweepLeft += store.sweep(sweepRow, SWEEP_ROWS_A_TICK);
    sweepRow += SWEEP_ROWS_A_TICK;
    if (sweepRow >= store.rowEnd()) {
      sweeping = sweepLeft > 0;
      sweepRow = 0;
      sweepLeft = 0;
    }
  }

  /**
   * Says where a block is, or why it is nowhere: one entry a group of the namespace, one in all
   * when the namespace is not known.
   *
   * @param digest namespace, 32 bytes
   * @param hash block hash, as long as the namespace has them
   * @throws CoreException when the hash has another length
   */
  public List<Whereabouts> explain(byte[] digest, byte[] hash) {
    return new Explanations(store, namespaces, ssd, sessions).explain(digest, hash);
  }

  // ---- time and stop ----

  /**
   * Lets time pass: leases that have become too old end, old queries are forgotten, grants that no
   * engine takes up are revoked where others wait for their room, and a file in which a request is
   * too old is by-passed. What the files had done by then must have been told before.
   */
  public void tick(long nowNs) {
    store.setNow(nowNs);
    leases.expire(nowNs);
    leases.expireQueries(sessions, nowNs);
    operations.setNow(nowNs);
    pressure.relieve(sessions, nowNs);
    if (ssd != null) {
      ssd.tick(nowNs);
    }
    if (sweeping) {
      sweep();
    }
  }

  /** Closes admission: nothing more is claimed or granted. */
  public void beginStop(long nowNs) {
    operations.beginStop();
    for (Session session : sessions) {
      if (session != null) {
        inspectAll(session, nowNs);
        settleIfDone(session);
      }
    }
  }

  /** True when no operation of an open session is between Preparing and settled. */
  public boolean isQuiescent() {
    for (Session session : sessions) {
      if (session != null && !session.lost && session.unsettled > 0) {
        return false;
      }
    }
    return true;
  }

  // ---- statistics ----

  /** What the core holds and has done. */
  public CoreStats stats(long nowNs) {
    List<CoreStats.Session> lines = new ArrayList<>();
    int open = 0;
    int queries = 0;
    for (Session session : sessions) {
      if (session != null) {
        lines.add(
            new CoreStats.Session(
                session.slot,
                session.pid,
                session.instance.id,
                session.client,
                !session.lost,
                session.registrations.size(),
                session.leases,
                session.unsettled,
                session.askedBlocks,
                session.foundBlocks,
                session.restoredBlocks,
                session.restoredBytes,
                session.publishedBlocks,
                session.publishedBytes));
        open += session.lost ? 0 : 1;
        queries += session.queries;
      }
    }
    Retained retained = new Retained(sessions, store, nowNs);
    BlockPool pool = store.pool();
    return new CoreStats(
        pool.capacityBytes(),
        pool.usedBytes(),
        pool.slabs(),
        pool.freeSlabs(),
        store.residentBlocks(),
        store.residentBytes(),
        store.unsealedBlocks(),
        store.pinnedBlocks(),
        store.pinRefs(),
        leases.live(),
        leases.bytes(),
        leases.oldestAgeNs(nowNs),
        queries,
        operations.active,
        retained.operations,
        retained.bytes,
        open,
        lines.size() - open,
        registrations.live(),
        store.metadataBytes() + (ssd == null ? 0 : ssd.metadataBytes()),
        lookups.lookups,
        lookups.blocks,
        lookups.hits,
        lookups.missesTotal.clone(),
        leases.queriesExpired,
        store.insertions,
        operations.held,
        operations.refused,
        store.evictions,
        store.evictedBytes,
        operations.restores,
        operations.restoredBytes,
        operations.publishes,
        operations.publishedBytes(),
        operations.failed,
        pressure.revoked,
        operations.damaged,
        operations.stale,
        violations,
        List.copyOf(lines),
        List.copyOf(retained.list),
        ssd == null ? null : ssd.stats(nowNs));
  }
}
