package io.orbitkv.manager;

import com.google.protobuf.ByteString;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.StateDescriptor;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.AdminReply;
import io.orbitkv.channel.proto.AdminRequest;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Closed;
import io.orbitkv.channel.proto.ConfirmMappings;
import io.orbitkv.channel.proto.Failure;
import io.orbitkv.channel.proto.GroupFields;
import io.orbitkv.channel.proto.Health;
import io.orbitkv.channel.proto.Hello;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.Register;
import io.orbitkv.channel.proto.Registered;
import io.orbitkv.channel.proto.RegistrationReady;
import io.orbitkv.channel.proto.SessionConfirmed;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.channel.proto.Unregister;
import io.orbitkv.channel.proto.Unregistered;
import io.orbitkv.channel.proto.Welcome;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreException;
import io.orbitkv.core.RegistrationRequest;
import io.orbitkv.linux.Errno;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Memfd;
import io.orbitkv.linux.PidFd;
import io.orbitkv.linux.Poll;
import io.orbitkv.linux.Ucred;
import io.orbitkv.linux.UnixConnection;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One connection of a client, from the uid check to the evidence that its process is gone. Runs on
 * a thread of its own; what it hands to the control thread is checked.
 *
 * <p>A frame that is well formed but can not be served is answered with Failure, and the connection
 * goes on; bytes that are no frame end it.
 */
final class SessionConnection implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(SessionConnection.class);
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Bound for the first frame of a connection. */
  static final int FIRST_FRAME_MS = 5_000;

  private static final int CONFIRM_MS = 30_000;
  private static final int ADMIN_IDLE_MS = 60_000;
  private static final int LOOK_MS = 1_000;
  private static final int SETTLE_LOOK_MS = 50;
  private static final int TOKEN_BYTES = 16;
  private static final int MAX_NAME_BYTES = 256;

  private final BootstrapServer server;
  private final UnixConnection connection;
  private final FrameChannel frames;
  private final byte[] token = new byte[TOKEN_BYTES];
  private Ucred peer;
  private PidFd pidFd;
  private volatile boolean latched;
  private final CountDownLatch answered = new CountDownLatch(1);
  private volatile String name = "client not known";
  private ControlledSession session;
  private boolean mayPublish;
  private boolean exitIsEvidence;

  SessionConnection(BootstrapServer server, UnixConnection connection) {
    this.server = server;
    this.connection = connection;
    this.frames = new FrameChannel(connection, server.identity().epochLow());
  }

  // ---- life of the connection ----

  @Override
  public void run() {
    try {
      connection.enablePassCredentials();
      peer = connection.peer();
      server.peerRule().check(peer.uid());
      Hello hello = hello();
      if (hello == null) {
        return;
      }
      if (hello.getAdminOnly()) {
        welcomeAdmin();
        serve(ADMIN_IDLE_MS);
      } else {
        runSession(hello);
      }
    } catch (ProtocolException e) {
      fail(e.status(), e.getMessage());
    } catch (CoreException e) {
      fail(e.status(), e.getMessage());
    } catch (LinuxException e) {
      connectionBroke(e);
    } catch (RuntimeException e) {
      if (server.isStopping()) { // its wait for the control thread was cut short
        fail(Status.STOPPING, "the Manager is stopping");
      } else {
        server.counters().internalError();
        LOG.error("connection ended by a fault: {}", name, e);
        fail(Status.INTERNAL, "fault inside the Manager; its log has the cause");
      }
    } finally {
      answered.countDown();
      connection.close();
      if (pidFd != null) {
        pidFd.close();
      }
    }
  }

  /** Ends the connection from another thread. */
  void hangUp() {
    connection.shutdown();
  }

  /**
   * Ends the connection once the frames that have arrived whole are answered; a frame of which a
   * part has arrived is dropped. From another thread.
   */
  void latch() {
    latched = true;
    connection.shutdownInput();
  }

  /** Waits until no more frame will be answered; false when the time has passed. */
  boolean awaitAnswered(long timeoutMs) throws InterruptedException {
    return answered.await(timeoutMs, TimeUnit.MILLISECONDS);
  }

  /** Client and process, as far as they are known. */
  String name() {
    return name;
  }

  private void fail(Status status, String message) {
    server.connectionFailed(status, name, message);
    try {
      frames.send(failure(status, message));
    } catch (LinuxException | IllegalStateException e) {
      return; // the client is gone or not listening
    }
  }

  private void connectionBroke(LinuxException e) {
    if (e.errno() == Errno.ETIMEDOUT) {
      fail(Status.INVALID, "no frame in time: " + e.getMessage());
    } else {
      server.connectionFailed(Status.SESSION_ENDED, name, e.getMessage());
    }
  }

  // ---- bootstrap ----

  private Hello hello() {
    ClientFrame frame = frames.receive(FIRST_FRAME_MS);
    if (frame == null) {
      return null;
    }
    if (!frame.hasHello()) {
      throw new ProtocolException(
          Status.INVALID, "first frame=" + frame.getBodyCase() + ", wanted=HELLO");
    }
    Hello hello = frame.getHello();
    checkVersions(hello);
    name = "client=\"" + printable(hello.getClientName()) + "\", pid=" + peer.pid();
    return hello;
  }

  private static void checkVersions(Hello hello) {
    if (hello.getChannelVersion() != Protocol.CHANNEL_VERSION
        || hello.getLifecycleVersion() != Protocol.LIFECYCLE_VERSION) {
      throw new ProtocolException(
          Status.VERSION_MISMATCH,
          "versions differ: client channel="
              + hello.getChannelVersion()
              + ", lifecycle="
              + hello.getLifecycleVersion()
              + "; Manager channel="
              + Protocol.CHANNEL_VERSION
              + ", lifecycle="
              + Protocol.LIFECYCLE_VERSION);
    }
  }

  /** Text of a client as a log line and the status may show it. */
  static String printable(String text) {
    String cut = text.length() > MAX_NAME_BYTES ? text.substring(0, MAX_NAME_BYTES) : text;
    return cut.replaceAll("[^\\x20-\\x21\\x23-\\x7e]", "?");
  }

  private void runSession(Hello hello) {
    checkInstance(hello.getInstanceId());
    server.refuseWhenStopping();
    pidFd = takePidFd();
    int slot = reserveSlot();
    if (slot < 0) {
      throw new ProtocolException(
          Status.LIMIT,
          "no session slot is free: live or retained sessions, limit="
              + Protocol.MAX_SESSIONS
              + "; orbitkv status --retained tells which are retained, and why");
    }
    server.slotTaken(slot);
    SessionMemory memory = createMemory(slot);
    boolean opened = false;
    try {
      welcome(memory);
      String notice = confirmSession();
      if (notice == null) {
        return;
      }
      open(memory, hello);
      opened = true;
      memory.closeMemfds();
      runOpened(notice);
    } finally {
      if (!opened) {
        release(slot);
      }
      memory.close();
    }
  }

  private int reserveSlot() {
    CompletableFuture<Integer> reserved = server.control().call(CacheCore::reserveSlot);
    try {
      return Waits.answer(reserved);
    } catch (RuntimeException e) { // a slot that comes too late is given back
      var _ =
          reserved.thenAccept(late -> {
            if (late >= 0) {
              release(late);
            }
          });
      throw e;
    }
  }

  private SessionMemory createMemory(int slot) {
    try {
      return SessionMemory.create(slot, server.identity());
    } catch (Throwable t) { // a failed create leaves nothing behind
      release(slot);
      throw t;
    }
  }

  private void release(int slot) {
    var _ =
        server
            .control()
            .call(core -> {
              core.releaseSlot(slot);
              return null;
            });
  }

  private static void checkInstance(String instance) {
    int bytes = ByteString.copyFromUtf8(instance).size();
    if (bytes < 1 || bytes > MAX_NAME_BYTES) {
      throw new ProtocolException(
          Status.INVALID, "instance id has bytes=" + bytes + ", allowed=1.." + MAX_NAME_BYTES);
    }
  }

  private PidFd takePidFd() {
    Fd fd = connection.peerPidFd();
    if (fd != null) {
      return PidFd.adopt(fd);
    }
    if (peer.pid() == 0) {
      return null;
    }
    try {
      return PidFd.open(peer.pid());
    } catch (LinuxException e) {
      LOG.info("process can not be observed: {}, {}", name, e.getMessage());
      return null;
    }
  }

  private void welcomeAdmin() {
    frames.send(ManagerFrame.newBuilder().setWelcome(welcomeFields()).build());
  }

  private void welcome(SessionMemory memory) {
    RANDOM.nextBytes(token);
    Welcome welcome =
        welcomeFields()
            .setSessionSlot(memory.slot())
            .setSessionToken(ByteString.copyFrom(token))
            .setChannelBytes(ChannelDescriptor.REGION_BYTES)
            .setGrantBytes(GrantTable.REGION_BYTES)
            .build();
    frames.send(ManagerFrame.newBuilder().setWelcome(welcome).build(), memory.descriptors());
  }

  private Welcome.Builder welcomeFields() {
    return Welcome.newBuilder()
        .setChannelVersion(Protocol.CHANNEL_VERSION)
        .setLifecycleVersion(Protocol.LIFECYCLE_VERSION)
        .setManagerEpoch(ByteString.copyFrom(server.identity().epochBytes()))
        .setManagerPid(server.identity().pid())
        .setSoftwareVersion(server.identity().version());
  }

  /** Takes the client's word that it has mapped; returns a notice for it, or null at its end. */
  private String confirmSession() {
    ClientFrame frame = frames.receive(CONFIRM_MS);
    if (frame == null) {
      return null;
    }
    checkEpoch();
    if (!frame.hasConfirmSession()) {
      throw new ProtocolException(
          Status.INVALID, "frame=" + frame.getBodyCase() + ", wanted=CONFIRM_SESSION");
    }
    checkToken(frame.getConfirmSession().getSessionToken());
    String notice = exitNotice(pidFd != null, peer.pid(), frames.senderPid());
    exitIsEvidence = notice.isEmpty();
    mayPublish = exitIsEvidence;
    return notice;
  }

  /**
   * Why the end of the engine's process would be no evidence; empty when it is.
   *
   * @param observed whether there is a pidfd
   * @param peerPid process that connected, 0 when it has no number here
   * @param senderPid process that sent the confirming frame
   */
  static String exitNotice(boolean observed, int peerPid, int senderPid) {
    String reason = "";
    if (peerPid == 0) {
      reason = "the process is in a PID namespace that the Manager does not see";
    } else if (!observed) {
      reason = "the kernel gives no descriptor of the process";
    } else if (senderPid != peerPid) {
      reason = "connected by pid=" + peerPid + ", confirmed by pid=" + senderPid;
    }
    return reason.isEmpty()
        ? ""
        : "session may restore but not publish, since its end can not be observed: " + reason;
  }

  private void open(SessionMemory memory, Hello hello) {
    session = new ControlledSession(memory, name, this::hangUp, this::latch);
    String client = printable(hello.getClientName());
    CompletableFuture<Void> opened =
        server.control().open(session, hello.getInstanceId(), client, peer.pid(), mayPublish);
    try {
      Waits.answer(opened);
    } catch (IllegalStateException e) {
      if (opened.isCompletedExceptionally() || session.tryClaim()) {
        throw e; // it is not open, and never will be
      }
      Waits.answer(opened); // the control thread is at it
    }
  }

  private void runOpened(String notice) {
    server.opened(this);
    LOG.info("session opened: slot={}, {}, may publish={}", session.slot, name, mayPublish);
    SessionEnd reason = SessionEnd.SOCKET_LOST;
    try {
      frames.send(
          ManagerFrame.newBuilder()
              .setSessionConfirmed(
                  SessionConfirmed.newBuilder().setMayPublish(mayPublish).setNotice(notice))
              .build());
      reason = serve(Integer.MAX_VALUE);
    } catch (ProtocolException e) {
      reason = SessionEnd.VIOLATION;
      fail(e.status(), e.getMessage());
    } catch (LinuxException e) {
      LOG.debug("socket broke: {}, {}", name, e.getMessage());
    } finally {
      endSession(reason);
    }
  }

  // ---- frames ----

  /** Serves frames until the connection ends or has been idle for too long. */
  private SessionEnd serve(int idleMs) {
    int[] watched = {connection.fd(), pidFd == null ? -1 : pidFd.fd()};
    int quietMs = 0;
    while (quietMs < idleMs && (latched || !isSettled())) {
      int ready = Poll.poll(watched, Poll.IN, LOOK_MS);
      if ((ready & 1) != 0) {
        quietMs = 0;
        ClientFrame frame = frames.receive(FrameChannel.FRAME_MS);
        if (frame == null) {
          return SessionEnd.SOCKET_LOST;
        }
        checkEpoch();
        if (frame.hasClose()) {
          frames.send(ManagerFrame.newBuilder().setClosed(Closed.getDefaultInstance()).build());
          return SessionEnd.CLOSED;
        }
        answer(frame);
      } else if (ready != 0) {
        return SessionEnd.PROCESS_EXITED;
      } else {
        quietMs += LOOK_MS;
      }
    }
    return SessionEnd.SOCKET_LOST;
  }

  private boolean isSettled() {
    return session != null && session.settled.isDone();
  }

  private void checkEpoch() {
    if (frames.frameEpoch() != server.identity().epochLow()) {
      throw new ProtocolException(
          Status.EPOCH_MISMATCH,
          "frame: epoch=0x%x, this Manager has epoch=0x%x"
              .formatted(frames.frameEpoch(), server.identity().epochLow()));
    }
  }

  private void checkToken(ByteString given) {
    if (!MessageDigest.isEqual(token, given.toByteArray())) {
      throw new ProtocolException(Status.FORBIDDEN, "session token differs");
    }
  }

  /** Answers one frame; what can not be served becomes a Failure. */
  private void answer(ClientFrame frame) {
    try {
      switch (frame.getBodyCase()) {
        case REGISTER -> register(frame.getRegister());
        case CONFIRM_MAPPINGS -> confirmMappings(frame.getConfirmMappings());
        case UNREGISTER -> unregister(frame.getUnregister());
        case HEALTH -> health();
        case ADMIN -> admin(frame.getAdmin());
        case HELLO, CONFIRM_SESSION, CLOSE, BODY_NOT_SET ->
            frames.send(
                failure(Status.INVALID, "frame=" + frame.getBodyCase() + " has no place here"));
      }
    } catch (ProtocolException e) {
      frames.send(failure(e.status(), e.getMessage()));
    } catch (CoreException e) {
      frames.send(failure(e.status(), e.getMessage()));
    }
  }

  private ManagerFrame failure(Status status, String message) {
    return ManagerFrame.newBuilder()
        .setFailure(
            Failure.newBuilder()
                .setCode(status.code())
                .setMessage(message)
                .setChannelVersion(Protocol.CHANNEL_VERSION)
                .setLifecycleVersion(Protocol.LIFECYCLE_VERSION))
        .build();
  }

  private void register(Register register) {
    requireSession();
    checkToken(register.getSessionToken());
    server.refuseWhenStopping();
    PoolArenas pool = server.pool();
    if (!pool.isReady()) {
      throw new ProtocolException(
          Status.NOT_READY, "pool is being prepared: percent=" + pool.readyPercent());
    }
    RegistrationRequest request = checked(register);
    CacheCore.RegistrationId id =
        Waits.answer(
            server.control().call(core -> core.register(session.slot, request, System.nanoTime())));
    server.states().add(session.slot, id.id(), request, register.getState());
    Registered.Builder registered =
        Registered.newBuilder()
            .setRegistrationId(id.id())
            .setGeneration(id.generation())
            .setNamespace(ByteString.copyFrom(request.namespace()));
    for (int i = 0; i < pool.count(); i++) {
      registered.addArenaBytes(pool.byteSize(i));
    }
    sendArenas(ManagerFrame.newBuilder().setRegistered(registered).build(), request.restoreOnly());
    LOG.info(
        "registered: slot={}, {}, registration={}, generation={}, restore only={}",
        session.slot,
        name,
        id.id(),
        id.generation(),
        request.restoreOnly());
  }

  private RegistrationRequest checked(Register register) {
    StateFields state = register.getState();
    StateDescriptor.check(state);
    if (register.getGroupPagesCount() != state.getGroupsCount()) {
      throw new ProtocolException(
          Status.INVALID,
          "group_pages has entries="
              + register.getGroupPagesCount()
              + ", groups="
              + state.getGroupsCount());
    }
    List<RegistrationRequest.Group> groups = new ArrayList<>();
    for (int i = 0; i < state.getGroupsCount(); i++) {
      groups.add(checkedGroup(state.getGroups(i), register.getGroupPages(i)));
    }
    return new RegistrationRequest(
        StateDescriptor.digest(state),
        state.getHashBytes(),
        state.getTpRank(),
        state.getPpRank(),
        state.getDcpRank(),
        groups,
        register.getRestoreOnly() || !mayPublish,
        exitIsEvidence && exitEndsCopies(register.getDevice()));
  }

  private RegistrationRequest.Group checkedGroup(GroupFields group, int pages) {
    if (group.getBlockBytes() > server.slabBytes()) {
      throw new ProtocolException(
          Status.LIMIT,
          "block_bytes of group "
              + group.getId()
              + "="
              + group.getBlockBytes()
              + " are more than a slab of the pool, limit="
              + server.slabBytes());
    }
    if (pages < 1) {
      throw new ProtocolException(
          Status.INVALID,
          "pages of group "
              + group.getId()
              + "="
              + Integer.toUnsignedString(pages)
              + ", allowed=1.."
              + Integer.MAX_VALUE);
    }
    return new RegistrationRequest.Group(group.getId(), (int) group.getBlockBytes(), pages);
  }

  /** Whether copies end with the process: those of CPU threads do, a device's may go on. */
  private static boolean exitEndsCopies(String device) {
    return switch (device) {
      case "host" -> true;
      case "cuda" -> false;
      default ->
          throw new ProtocolException(
              Status.INVALID, "device=\"" + printable(device) + "\", allowed=host, cuda");
    };
  }

  private void sendArenas(ManagerFrame frame, boolean readOnly) {
    PoolArenas pool = server.pool();
    int[] fds = new int[pool.count()];
    List<Fd> reopened = new ArrayList<>();
    try {
      for (int i = 0; i < fds.length; i++) {
        fds[i] = pool.fd(i).value();
        if (readOnly) {
          reopened.add(Memfd.reopenReadOnly(pool.fd(i)));
          fds[i] = reopened.getLast().value();
        }
      }
      frames.send(frame, fds);
    } finally {
      reopened.forEach(Fd::close);
    }
  }

  private void confirmMappings(ConfirmMappings confirm) {
    requireSession();
    if (exitIsEvidence && frames.senderPid() != peer.pid()) {
      throw new ProtocolException(
          Status.INVALID,
          "mappings are confirmed by pid="
              + frames.senderPid()
              + ", the session belongs to pid="
              + peer.pid());
    }
    Waits.answer(
        server
            .control()
            .call(core -> {
              core.confirmMappings(
                  session.slot, confirm.getRegistrationId(), confirm.getGeneration());
              return null;
            }));
    frames.send(
        ManagerFrame.newBuilder()
            .setRegistrationReady(RegistrationReady.getDefaultInstance())
            .build());
  }

  private void unregister(Unregister unregister) {
    requireSession();
    CompletableFuture<Void> done =
        server
            .control()
            .unregister(session, unregister.getRegistrationId(), unregister.getGeneration());
    while (!Waits.completes(done, LOOK_MS)) { // it takes as long as the engine's copies
      boolean gone = Poll.poll(connection.fd(), Poll.OUT, 0) != Poll.OUT;
      if (gone || (pidFd != null && pidFd.hasExited())) {
        return;
      }
      if (latched) { // the drain of the stop is over: it would not be done in time
        throw new ProtocolException(
            Status.STOPPING, "the Manager stops while operations of the registration go on");
      }
    }
    Waits.answer(done);
    server.states().remove(session.slot, unregister.getRegistrationId());
    frames.send(
        ManagerFrame.newBuilder().setUnregistered(Unregistered.getDefaultInstance()).build());
  }

  private void health() {
    PoolArenas pool = server.pool();
    frames.send(
        ManagerFrame.newBuilder()
            .setHealth(Health.newBuilder().setReady(pool.isReady()).setPercent(pool.readyPercent()))
            .build());
  }

  private void admin(AdminRequest request) {
    String json =
        switch (request.getWhatCase()) {
          case STATUS -> server.statusJson();
          case SHUTDOWN -> "{\"state\":\"stopping\"}";
          case CLEAR -> clear(request.getClear().getNamespace().toByteArray());
          case EXPLAIN ->
              explain(
                  request.getExplain().getNamespace().toByteArray(),
                  request.getExplain().getHash().toByteArray());
          case WHAT_NOT_SET ->
              throw new ProtocolException(Status.INVALID, "admin request names nothing to do");
        };
    frames.send(ManagerFrame.newBuilder().setAdmin(AdminReply.newBuilder().setJson(json)).build());
    if (request.hasShutdown()) {
      LOG.info("shutdown asked for: {}", name);
      server.requestStop();
    }
  }

  private String clear(byte[] namespace) {
    if (namespace.length > 0) {
      requireDigest(namespace);
    }
    String done = AdminAnswers.clear(server.control(), namespace.length > 0 ? namespace : null);
    LOG.info("cleared: {}, {}", name, done);
    return done;
  }

  private String explain(byte[] namespace, byte[] hash) {
    requireDigest(namespace);
    if (hash.length < Protocol.MIN_HASH_BYTES || hash.length > Protocol.MAX_HASH_BYTES) {
      throw new ProtocolException(
          Status.INVALID,
          "hash bytes="
              + hash.length
              + ", allowed="
              + Protocol.MIN_HASH_BYTES
              + ".."
              + Protocol.MAX_HASH_BYTES);
    }
    return AdminAnswers.explain(server.control(), namespace, hash);
  }

  private static void requireDigest(byte[] namespace) {
    if (namespace.length != Protocol.NAMESPACE_BYTES) {
      throw new ProtocolException(
          Status.INVALID,
          "namespace bytes=" + namespace.length + ", wanted=" + Protocol.NAMESPACE_BYTES);
    }
  }

  private void requireSession() {
    if (session == null) {
      throw new ProtocolException(Status.INVALID, "the connection has no session: admin only");
    }
  }

  // ---- end of the session ----

  /** Ends the session and waits until nothing of it is left: settled, or the Manager's own end. */
  private void endSession(SessionEnd reason) {
    answered.countDown();
    server.states().removeAll(session.slot);
    var _ = server.control().lose(session, reason);
    connection.close();
    boolean told = pidFd == null;
    while (!Waits.completes(session.settled, told ? LOOK_MS : SETTLE_LOOK_MS)) {
      if (Thread.currentThread().isInterrupted()) {
        LOG.warn("session is given up unsettled: slot={}, {}", session.slot, name);
        return;
      }
      if (!told && pidFd.hasExited()) {
        told = true;
        processExited();
      }
    }
  }

  private void processExited() {
    if (exitIsEvidence) {
      LOG.info("process has exited: slot={}, {}", session.slot, name);
      var _ = server.control().exited(session);
    } else {
      LOG.warn(
          "process has exited, but that is no evidence; what it held stays retained: slot={}, {}",
          session.slot,
          name);
    }
  }
}
