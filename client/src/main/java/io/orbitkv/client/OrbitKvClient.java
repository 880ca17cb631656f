package io.orbitkv.client;

import com.google.protobuf.ByteString;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.AdminRequest;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Close;
import io.orbitkv.channel.proto.ConfirmMappings;
import io.orbitkv.channel.proto.ConfirmSession;
import io.orbitkv.channel.proto.HealthRequest;
import io.orbitkv.channel.proto.Register;
import io.orbitkv.channel.proto.Registered;
import io.orbitkv.channel.proto.StatusRequest;
import io.orbitkv.channel.proto.Unregister;
import io.orbitkv.channel.proto.Welcome;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.PidFd;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * One session with the Manager of this host. Thread-safe. Not for use in a process forked from this
 * one: its memory is not there.
 */
public final class OrbitKvClient implements AutoCloseable {
  private static final long FIRST_POLL_NS = 100_000;
  private static final long MAX_POLL_NS = 2_000_000;
  private static final System.Logger LOGGER = System.getLogger(OrbitKvClient.class.getName());
  private static final int WELCOME_FDS = 5;
  private static final int EPOCH_BYTES = 16;
  private static final long SETTLE_LOOK_NS = 100_000;
  private static final long NOT_READY_PARK_NS = 10_000_000;

  private final ClientConfig config;
  private final Lifecycle lifecycle;
  private final PidFd manager;
  private final ByteString token;
  private final Mapping channel;
  private final Mapping grants;
  private final EventFd managerWake;
  private final EventFd restoreWake;
  private final EventFd publishWake;
  private final EngineSession session;
  private final QueryCalls queries;
  private final CopyAgents agents;
  private final boolean mayPublish;
  private final Set<Registration> registrations = ConcurrentHashMap.newKeySet();
  private volatile boolean closing;
  private boolean closed;

  /** Steps of a connect, so that a failure undoes exactly what was done. */
  private static final class Parts {
    Lifecycle lifecycle;
    Welcome welcome;
    long epoch;
    Mapping channel;
    Mapping grants;
    PidFd manager;
    EventFd[] wakes = new EventFd[3];
    volatile EngineSession session;
    volatile QueryCalls queries;
    volatile CopyAgents agents;
    volatile String ended;
    private final Runnable onEnd;

    Parts(Runnable onEnd) {
      this.onEnd = onEnd;
    }

    void ended(String reason) {
      ended = reason;
      EngineSession live = session;
      if (live != null) {
        live.end(reason);
      }
      QueryCalls calls = queries;
      CopyAgents workers = agents;
      if (calls != null && workers != null) {
        calls.wakeAll();
        workers.sessionEnded();
      }
      onEnd.run();
    }

    void undo() {
      if (lifecycle != null) {
        lifecycle.close();
      }
      if (manager != null) {
        manager.close();
      }
      for (EventFd wake : wakes) {
        if (wake != null) {
          wake.close();
        }
      }
      if (channel != null) {
        channel.close();
      }
      if (grants != null) {
        grants.close();
      }
    }
  }

  private OrbitKvClient(ClientConfig config, Parts parts, boolean mayPublish) {
    this.config = config;
    this.lifecycle = parts.lifecycle;
    this.manager = parts.manager;
    this.token = parts.welcome.getSessionToken();
    this.channel = parts.channel;
    this.grants = parts.grants;
    this.managerWake = parts.wakes[0];
    this.restoreWake = parts.wakes[1];
    this.publishWake = parts.wakes[2];
    this.session =
        new EngineSession(
            channel.segment(), GrantTable.open(grants.segment()), parts.epoch, managerWake::signal);
    this.agents = new CopyAgents(session, restoreWake, publishWake);
    this.queries = new QueryCalls(session, agents, config.spinNs());
    this.mayPublish = mayPublish;
    parts.session = session;
    parts.agents = agents;
    parts.queries = queries;
    if (parts.ended != null) {
      session.end(parts.ended);
    }
    agents.start(queries, config.copyThreads(), "orbitkv");
  }

  /**
   * Connects to the Manager.
   *
   * @throws ManagerUnavailableException at once when none listens
   * @throws OrbitKvException when it refuses, with both versions where these differ
   */
  public static OrbitKvClient connect(ClientConfig config) {
    return connect(config, () -> {});
  }

  /**
   * As {@link #connect(ClientConfig)}.
   *
   * @param onEnd run once when the connection has ended, also that of a failed connect, on the
   *     thread that noticed
   */
  static OrbitKvClient connect(ClientConfig config, Runnable onEnd) {
    Parts parts = new Parts(onEnd);
    int timeoutMs = Math.toIntExact(config.timeout().toMillis());
    try {
      parts.lifecycle = Lifecycle.connect(config.socket(), timeoutMs, "orbitkv", parts::ended);
      parts.manager = parts.lifecycle.manager();
      welcome(config, parts, timeoutMs);
      ClientFrame confirm =
          ClientFrame.newBuilder()
              .setConfirmSession(
                  ConfirmSession.newBuilder().setSessionToken(parts.welcome.getSessionToken()))
              .build();
      Lifecycle.Answer confirmed = parts.lifecycle.callWithCredentials(confirm, timeoutMs);
      Lifecycle.require(confirmed, confirmed.frame().hasSessionConfirmed());
      String notice = confirmed.frame().getSessionConfirmed().getNotice();
      if (!notice.isEmpty()) {
        LOGGER.log(System.Logger.Level.WARNING, notice);
      }
      return new OrbitKvClient(
          config, parts, confirmed.frame().getSessionConfirmed().getMayPublish());
    } catch (ProtocolException e) {
      parts.undo();
      throw new OrbitKvException(e.status(), e.getMessage(), e);
    } catch (Throwable t) { // a failed connect leaves nothing behind
      parts.undo();
      throw t;
    }
  }

  private static void welcome(ClientConfig config, Parts parts, int timeoutMs) {
    ClientFrame hello =
        ClientFrame.newBuilder()
            .setHello(Lifecycle.hello(config.instanceId(), config.clientName()))
            .build();
    Lifecycle.Answer answer = parts.lifecycle.call(hello, timeoutMs);
    Lifecycle.require(
        answer,
        answer.frame().hasWelcome()
            && answer.fds().size() == WELCOME_FDS
            && answer.frame().getWelcome().getManagerEpoch().size() == EPOCH_BYTES);
    parts.welcome = answer.frame().getWelcome();
    parts.epoch =
        parts.welcome.getManagerEpoch().asReadOnlyByteBuffer().getLong(EPOCH_BYTES - Long.BYTES);
    parts.lifecycle.expectEpoch(parts.epoch);
    try {
      requireBytes("channel", parts.welcome.getChannelBytes(), ChannelDescriptor.REGION_BYTES);
      requireBytes("grants", parts.welcome.getGrantBytes(), GrantTable.REGION_BYTES);
      parts.channel =
          Arenas.mapSealed(
              answer.fds().get(0), ChannelDescriptor.REGION_BYTES, Mapping.Access.READ_WRITE);
      parts.grants =
          Arenas.mapSealed(answer.fds().get(1), GrantTable.REGION_BYTES, Mapping.Access.READ_WRITE);
      ChannelDescriptor.check(parts.channel.segment());
      for (int i = 0; i < parts.wakes.length; i++) {
        Fd fd = answer.fds().get(2 + i);
        parts.wakes[i] = EventFd.adopt(Fd.own(fd.release()));
      }
    } finally {
      answer.closeFds();
    }
  }

  private static void requireBytes(String region, long found, long wanted) {
    if (found != wanted) {
      throw new OrbitKvException(
          Status.INVALID, region + ": bytes=" + found + ", wanted=" + wanted);
    }
  }

  ClientConfig config() {
    return config;
  }

  CopyAgents agents() {
    return agents;
  }

  long timeoutNs() {
    return config.timeout().toNanos();
  }

  OperationHandle handle(EngineOperation operation) {
    return new OperationHandle(operation, agents, OperationHandle.spinNs(config, operation));
  }

  void requireOpen() {
    if (closing) {
      throw new OrbitKvException(Status.SESSION_ENDED, "client is closed");
    }
  }

  /** Low half of the Manager epoch. */
  public long epochLow() {
    return session.epoch();
  }

  /** False when the Manager can not observe the end of this process; restores work all the same. */
  public boolean mayPublish() {
    return mayPublish;
  }

  /** False once the Manager takes no more commands, or is gone: calls fail then. */
  public boolean isOpen() {
    return !closing && !session.isOver();
  }

  /**
   * What the publishes of this session are at. Waits for nothing, whatever other calls wait for.
   */
  public PublishActivity publishActivity() {
    return session.publishActivity(System.nanoTime(), timeoutNs(), isManagerAlive());
  }

  private boolean isManagerAlive() {
    try {
      return manager == null ? isOpen() : !manager.hasExited();
    } catch (IllegalStateException e) { // closed meanwhile
      return false;
    }
  }

  /** True when no operation has steps left. */
  boolean isIdle() {
    return session.isIdle();
  }

  /** Why {@link #isOpen} is false, the first reason; null while it is true. */
  String endReason() {
    String over = session.overReason();
    return over == null && closing ? "client is closed" : over;
  }

  /** True once {@link #close} has unmapped everything. */
  synchronized boolean isClosed() {
    return closed;
  }

  /**
   * Registers memory. While the Manager still prepares its pool this waits, within the time bound
   * of a call.
   *
   * @throws OrbitKvException naming the value and the rule, or the holder of the instance
   */
  public Registration register(RegistrationSpec spec) {
    return register(RegistrationForm.of(spec));
  }

  Registration register(RegistrationForm form) {
    requireOpen();
    Lifecycle.Answer answer = register(form.frame().setSessionToken(token).build());
    Registered registered = answer.frame().getRegistered();
    try {
      return complete(form, answer);
    } catch (Throwable t) { // a failed registration leaves nothing behind, here or there
      try {
        withdraw(registered);
      } catch (RuntimeException e) {
        t.addSuppressed(e);
      }
      throw t;
    }
  }

  private Registration complete(RegistrationForm form, Lifecycle.Answer answer) {
    Registered registered = answer.frame().getRegistered();
    boolean readOnly = form.spec().restoreOnly() || !mayPublish;
    Arenas arenas = Arenas.map(answer.fds(), registered.getArenaBytesList(), readOnly);
    try {
      confirm(registered);
      Registration registration =
          new Registration(
              this,
              session,
              registered.getRegistrationId(),
              registered.getGeneration(),
              registered.getNamespace().toByteArray(),
              form.state().getHashBytes(),
              readOnly,
              form.groups(),
              arenas);
      registrations.add(registration);
      return registration;
    } catch (Throwable t) {
      try (arenas) {
        throw t;
      }
    }
  }

  /** Asks the Manager to forget a registration that this side does not complete. */
  private void withdraw(Registered registered) {
    lifecycle.post(
        unregisterFrame(registered.getRegistrationId(), registered.getGeneration()), timeoutMs());
  }

  private void withdrawLate(Lifecycle.Answer answer) {
    if (answer.frame().hasRegistered()) {
      withdraw(answer.frame().getRegistered());
    }
  }

  private Lifecycle.Answer register(Register register) {
    ClientFrame frame = ClientFrame.newBuilder().setRegister(register).build();
    long began = System.nanoTime();
    while (true) {
      try {
        Lifecycle.Answer answer = lifecycle.call(frame, timeoutMs(), this::withdrawLate);
        Lifecycle.require(answer, answer.frame().hasRegistered());
        return answer;
      } catch (OrbitKvException e) {
        if (e.status() != Status.NOT_READY || System.nanoTime() - began > timeoutNs()) {
          throw e;
        }
        LockSupport.parkNanos(this, NOT_READY_PARK_NS);
      }
    }
  }

  private void confirm(Registered registered) {
    ClientFrame confirm =
        ClientFrame.newBuilder()
            .setConfirmMappings(
                ConfirmMappings.newBuilder()
                    .setRegistrationId(registered.getRegistrationId())
                    .setGeneration(registered.getGeneration()))
            .build();
    Lifecycle.Answer ready = lifecycle.callWithCredentials(confirm, timeoutMs());
    Lifecycle.require(ready, ready.frame().hasRegistrationReady());
  }

  private static ClientFrame unregisterFrame(int id, int generation) {
    return ClientFrame.newBuilder()
        .setUnregister(Unregister.newBuilder().setRegistrationId(id).setGeneration(generation))
        .build();
  }

  void unregister(int id, int generation) {
    ClientFrame frame = unregisterFrame(id, generation);
    try {
      Lifecycle.Answer answer = lifecycle.callUninterruptibly(frame, timeoutMs());
      Lifecycle.require(answer, answer.frame().hasUnregistered());
    } catch (OrbitKvException e) {
      boolean ended =
          e.status() == Status.SESSION_ENDED // and the registration with it
              || e.status() == Status.UNKNOWN_REGISTRATION; // by an earlier try
      if (!ended) {
        throw e;
      }
    }
  }

  void forget(Registration registration) {
    registrations.remove(registration);
  }

  private long timeoutMs() {
    return config.timeout().toMillis();
  }

  /** An empty round trip. Allocates nothing. */
  public void ping() {
    simpleCall(Opcode.PING, 0, 0);
  }

  private Status simpleCall(int opcode, long scalar0, long scalar1) {
    requireOpen();
    QueryCalls.Call call = queries.take();
    try {
      return queries.call(call, opcode, scalar0, scalar1, null, timeoutNs());
    } finally {
      queries.giveBack(call);
    }
  }

  /**
   * Looks blocks up.
   *
   * @throws OrbitKvException when the request breaks a rule, the query was superseded or the
   *     session is over
   */
  public LookupResult lookup(LookupRequestSpec spec) {
    requireOpen();
    if (spec.namespaces().isEmpty() || spec.namespaces().size() > Protocol.MAX_NAMESPACES) {
      throw new OrbitKvException(
          Status.LIMIT,
          "lookup: namespaces="
              + spec.namespaces().size()
              + ", allowed=1.."
              + Protocol.MAX_NAMESPACES);
    }
    for (byte[] namespace : spec.namespaces()) {
      requireNamespace(namespace);
    }
    requireHashes(spec.hashes(), spec.namespaces().size());
    return queries.lookup(spec, timeoutNs());
  }

  /**
   * Looks blocks up and asks again while they are on their way from another tier.
   *
   * @param spec with an identity, so that the Manager holds what has arrived between two questions
   * @param timeout most time to ask again
   * @return the first other answer; {@link LookupResult.Outcome#LOADING} when the time has passed
   * @throws OrbitKvException as {@link #lookup(LookupRequestSpec)}
   */
  public LookupResult lookup(LookupRequestSpec spec, Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    long pauseNs = FIRST_POLL_NS;
    LookupResult result = lookup(spec);
    while (result.outcome() == LookupResult.Outcome.LOADING && System.nanoTime() - end < 0) {
      LockSupport.parkNanos(this, pauseNs);
      if (Thread.currentThread().isInterrupted()) {
        return result;
      }
      pauseNs = Math.min(MAX_POLL_NS, 2 * pauseNs);
      result = lookup(spec);
    }
    return result;
  }

  /**
   * Looks up the prefix of group 0 in one namespace, as {@link LookupRequestSpec#prefix}, and
   * allocates nothing.
   *
   * @param lease receives the lease's id at 0 and its number of blocks at 1; both 0 for none
   * @return blocks before the first missing one; 0 also while they are on their way from another
   *     tier
   */
  public int lookupPrefix(byte[] namespace, BlockHashes hashes, long[] lease) {
    requireOpen();
    requireNamespace(namespace);
    requireHashes(hashes, 1);
    QueryCalls.Call call = queries.take();
    try {
      queries.lookup(call.prefix(namespace, hashes), timeoutNs());
      int groups = LookupReply.groups(call.data, 0);
      boolean leased = LookupReply.leases(call.data, 0) > 0;
      long at = LookupReply.leaseAt(0, 0, groups, hashes.size());
      lease[0] = leased ? LookupReply.leaseId(call.data, at) : 0;
      lease[1] = leased ? LookupReply.leaseBlocks(call.data, at) : 0;
      return groups == 0 || LookupReply.outcome(call.data, 0) == LookupReply.LOADING
          ? 0
          : LookupReply.prefix(call.data, LookupReply.groupAt(0, 0, hashes.size()));
    } finally {
      queries.giveBack(call);
    }
  }

  private static void requireNamespace(byte[] namespace) {
    if (namespace.length != Protocol.NAMESPACE_BYTES) {
      throw new OrbitKvException(
          Status.INVALID,
          "lookup: namespace bytes=" + namespace.length + ", wanted=" + Protocol.NAMESPACE_BYTES);
    }
  }

  private static void requireHashes(BlockHashes hashes, int namespaces) {
    long bytes = LookupRequest.byteSize(namespaces, hashes.size(), hashes.hashBytes());
    if (hashes.size() < 1
        || hashes.size() > Protocol.MAX_HASHES
        || bytes > Protocol.MAX_SPAN_BYTES) {
      throw new OrbitKvException(
          Status.LIMIT,
          "lookup: hashes="
              + hashes.size()
              + ", allowed=1.."
              + Protocol.MAX_HASHES
              + ", bytes="
              + bytes
              + ", limit="
              + Protocol.MAX_SPAN_BYTES);
    }
  }

  /** Gives a lease back; false when it had ended already. */
  public boolean release(Lease lease) {
    if (lease.epoch() != session.epoch()) {
      return false;
    }
    return release(lease.id());
  }

  /**
   * Gives a lease back without waiting for the answer. When the session is over, its ring is full
   * or too many calls wait, nothing is sent: then the session's end or the lease's age ends it.
   */
  public void giveBack(Lease lease) {
    if (lease.epoch() == session.epoch()) {
      queries.giveBackLease(lease.id());
    }
  }

  /** As {@link #release(Lease)}, for a lease of {@link #lookupPrefix}. */
  public boolean release(long leaseId) {
    Status status = simpleCall(Opcode.RELEASE, leaseId, 0);
    if (status != Status.OK && status != Status.LEASE_ENDED) {
      throw new OrbitKvException(status, "release: lease=" + leaseId + ": " + status);
    }
    return status == Status.OK;
  }

  /**
   * Voids the answers to a query up to a revision; their leases end.
   *
   * @param queryId of {@link LookupRequestSpec}, not 0
   * @throws OrbitKvException with {@link Status#INVALID} when the query has no identity
   */
  public void cancelQuery(long queryId, int revision) {
    if (queryId == 0) {
      throw new OrbitKvException(Status.INVALID, "cancel: query=0 is a lookup without an identity");
    }
    Status status = simpleCall(Opcode.CANCEL_QUERY, queryId, revision);
    if (status != Status.OK) {
      throw new OrbitKvException(status, "cancel: query=" + queryId + ": " + status);
    }
  }

  /** State of the Manager. */
  public Health health() {
    requireOpen();
    ClientFrame frame =
        ClientFrame.newBuilder().setHealth(HealthRequest.getDefaultInstance()).build();
    Lifecycle.Answer answer = lifecycle.call(frame, timeoutMs());
    Lifecycle.require(answer, answer.frame().hasHealth());
    return new Health(
        answer.frame().getHealth().getReady(), answer.frame().getHealth().getPercent());
  }

  /** What the Manager holds, as one JSON object. */
  public String status() {
    requireOpen();
    ClientFrame frame =
        ClientFrame.newBuilder()
            .setAdmin(AdminRequest.newBuilder().setStatus(StatusRequest.getDefaultInstance()))
            .build();
    Lifecycle.Answer answer = lifecycle.call(frame, timeoutMs());
    Lifecycle.require(answer, answer.frame().hasAdmin());
    return answer.frame().getAdmin().getJson();
  }

  /**
   * Ends the session: nothing more is admitted, what is pending is cancelled, and memory is
   * unmapped unless a copy still uses it, which is logged; then it may be called again. Idempotent
   * and bounded; an interrupt does not cut it short.
   */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closing = true;
    boolean free = closeRegistrations();
    sayGoodbye();
    session.end("client is closed");
    boolean idle = queries.awaitIdle(timeoutNs());
    boolean settled = awaitOperations();
    boolean ended = agents.close(timeoutNs());
    lifecycle.close();
    if (manager != null) {
      manager.close();
    }
    managerWake.close();
    restoreWake.close();
    publishWake.close();
    if (free && idle && settled && ended) {
      channel.close();
      grants.close();
      closed = true;
    } else {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "a copy or call is still running: the memory of the session stays mapped");
    }
  }

  /** Waits until the operations have made the steps that the end of the session leaves them. */
  private boolean awaitOperations() {
    agents.kickAgents();
    long began = System.nanoTime();
    while (!session.isIdle() && System.nanoTime() - began < timeoutNs()) {
      agents.look(); // an earlier close may have ended the agents
      Uninterruptibly.park(this, SETTLE_LOOK_NS);
    }
    return session.isIdle();
  }

  private boolean closeRegistrations() {
    boolean free = true;
    for (Registration registration : registrations) {
      try {
        registration.close();
      } catch (RuntimeException e) { // the others are closed all the same
        free = false;
        LOGGER.log(System.Logger.Level.WARNING, "registration=" + registration.id(), e);
      }
    }
    return free;
  }

  private void sayGoodbye() {
    if (session.isOver()) {
      return;
    }
    ClientFrame frame = ClientFrame.newBuilder().setClose(Close.getDefaultInstance()).build();
    try {
      Lifecycle.Answer answer = lifecycle.callUninterruptibly(frame, timeoutMs());
      Lifecycle.require(answer, answer.frame().hasClosed());
    } catch (OrbitKvException e) {
      LOGGER.log(System.Logger.Level.DEBUG, "close without an answer", e);
    }
  }
}
