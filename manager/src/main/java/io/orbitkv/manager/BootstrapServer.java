package io.orbitkv.manager;

import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.UnixConnection;
import io.orbitkv.linux.UnixListener;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Accepts connections at the Unix socket and gives each a thread. Sessions are bounded by the
 * core's slots, connections without one by a number of their own.
 */
final class BootstrapServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BootstrapServer.class);
  private static final int MAX_BOOTSTRAPS = 64;
  private static final int ACCEPT_MS = 1_000;
  private static final long JOIN_MS = 10_000;

  private final Manager manager;
  private final UnixListener listener;
  private final Semaphore bootstraps = new Semaphore(MAX_BOOTSTRAPS);
  private final Map<SessionConnection, Entry> connections = new ConcurrentHashMap<>();

  /** The lowest free slot is taken first, so this one means that so many are in use. */
  private static final int SCARCE_FROM_SLOT = Protocol.MAX_SESSIONS * 3 / 4;

  private final LogLimiter limiter = new LogLimiter();
  private final LogLimiter slotLimiter = new LogLimiter(Duration.ofMinutes(1));
  private final ThreadFactory threads;
  private final Thread acceptor;
  private volatile boolean closed;

  /** Thread of a connection, and whether it still counts as one without a session. */
  private static final class Entry {
    final Thread thread;
    boolean holdsPermit = true;

    Entry(Thread thread) {
      this.thread = thread;
    }
  }

  BootstrapServer(Manager manager, UnixListener listener) {
    this(manager, listener, Thread.ofPlatform().name("orbitkv-session").daemon().factory());
  }

  /** A server whose connections run on threads of {@code threads}. */
  BootstrapServer(Manager manager, UnixListener listener, ThreadFactory threads) {
    this.manager = manager;
    this.listener = listener;
    this.threads = threads;
    this.acceptor = Thread.ofPlatform().name("orbitkv-accept").daemon().unstarted(this::accept);
  }

  void start() {
    acceptor.start();
  }

  private void accept() {
    while (!closed) {
      try {
        UnixConnection connection = listener.accept(ACCEPT_MS);
        if (connection != null) {
          admit(connection);
        }
      } catch (LinuxException e) { // as for want of descriptors: others will close theirs
        log(Status.LIMIT, "not accepted", e.getMessage());
        pause();
      } catch (Throwable t) { // as for want of threads or memory: the next may do better
        manager.counters().internalError();
        log(Status.INTERNAL, "not accepted", t.toString());
        pause();
      }
    }
  }

  /** Keeps an error that persists from taking a whole processor. */
  private void pause() {
    try {
      Thread.sleep(ACCEPT_MS / 10);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void admit(UnixConnection connection) {
    if (!bootstraps.tryAcquire()) {
      connectionFailed(
          Status.LIMIT,
          "client not known",
          "connections without a session, limit=" + MAX_BOOTSTRAPS);
      connection.close();
      return;
    }
    SessionConnection session = null;
    try {
      session = new SessionConnection(this, connection);
      start(session);
    } catch (Throwable t) { // a connection without a thread leaves nothing behind
      if (session != null) {
        connections.remove(session);
      }
      bootstraps.release();
      connection.close();
      throw t;
    }
  }

  private void start(SessionConnection session) {
    Thread thread = threads.newThread(() -> run(session));
    connections.put(session, new Entry(thread));
    thread.start();
  }

  private void run(SessionConnection session) {
    try {
      session.run();
    } finally {
      releasePermit(connections.get(session));
      connections.remove(session);
    }
  }

  /** The connection has a session now: it no longer counts among those without. */
  void opened(SessionConnection session) {
    releasePermit(connections.get(session));
  }

  private void releasePermit(Entry entry) {
    if (entry.holdsPermit) { // only the connection's own thread comes here
      entry.holdsPermit = false;
      bootstraps.release();
    }
  }

  /** Counts and logs a connection that was refused or ended for a fault. */
  void connectionFailed(Status status, String name, String message) {
    manager.counters().connectionFailed(status);
    log(status, name, message);
  }

  private void log(Status status, String name, String message) {
    long dropped = limiter.tryPass();
    if (dropped >= 0) {
      LOG.warn(
          "connection failed: {}, reason={}, detail=\"{}\", similar lines dropped={}",
          name,
          Labels.of(status),
          message,
          dropped);
    }
  }

  /** Warns well before slots run out. */
  void slotTaken(int slot) {
    if (isScarce(slot) && slotLimiter.tryPass() >= 0) {
      LOG.warn(
          "session slots run out: in use={}, limit={}; orbitkv status --retained tells which of them"
              + " are retained, and why",
          slot + 1,
          Protocol.MAX_SESSIONS);
    }
  }

  /** True when so many slots are in use that it is time to look for what retains them. */
  static boolean isScarce(int slotTaken) {
    return slotTaken >= SCARCE_FROM_SLOT;
  }

  boolean isStopping() {
    return manager.isStopping();
  }

  /** Refuses what would begin something. */
  void refuseWhenStopping() {
    if (manager.isStopping()) {
      throw new ProtocolException(Status.STOPPING, "the Manager is stopping");
    }
  }

  ManagerIdentity identity() {
    return manager.identity();
  }

  PeerRule peerRule() {
    return manager.peerRule();
  }

  ControlAgent control() {
    return manager.control();
  }

  PoolArenas pool() {
    return manager.pool();
  }

  EdgeCounters counters() {
    return manager.counters();
  }

  long slabBytes() {
    return manager.slabBytes();
  }

  RegisteredStates states() {
    return manager.states();
  }

  String statusJson() {
    return manager.statusJson();
  }

  void requestStop() {
    manager.requestStop();
  }

  /**
   * Takes no more connections and deletes the socket; what can not be deleted stays. Idempotent.
   */
  void closeListener() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      listener.unlink();
    } catch (LinuxException e) {
      LOG.warn("socket can not be deleted: {}", e.getMessage());
    }
    listener.close();
    join(acceptor, JOIN_MS);
  }

  /**
   * Closes every connection to further frames, and waits until those that have arrived are
   * answered, at most ten seconds; the log names the connections that are not done then.
   *
   * @return false when there are such
   */
  boolean answerArrived() {
    connections.keySet().forEach(SessionConnection::latch);
    long deadlineNs = System.nanoTime() + JOIN_MS * 1_000_000;
    boolean all = true;
    for (SessionConnection connection : connections.keySet()) {
      if (!isAnswered(connection, Math.max(1, (deadlineNs - System.nanoTime()) / 1_000_000))) {
        all = false;
        LOG.warn(
            "connection is cut off inside an answer: waited ms={}, {}", JOIN_MS, connection.name());
      }
    }
    return all;
  }

  private static boolean isAnswered(SessionConnection connection, long timeoutMs) {
    try {
      return connection.awaitAnswered(timeoutMs);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /**
   * Ends every connection and waits for the threads, at most ten seconds; the log names those that
   * have not ended then.
   */
  @Override
  public void close() {
    closeListener();
    connections.keySet().forEach(SessionConnection::hangUp);
    long deadlineNs = System.nanoTime() + JOIN_MS * 1_000_000;
    connections.forEach((connection, entry) -> {
      join(entry.thread, Math.max(1, (deadlineNs - System.nanoTime()) / 1_000_000));
      if (entry.thread.isAlive() && entry.thread != Thread.currentThread()) {
        LOG.warn("connection does not end: waited ms={}, {}", JOIN_MS, connection.name());
      }
    });
  }

  /** Most connections at a time, with a session or without. */
  static int maxConnections() {
    return Protocol.MAX_SESSIONS + MAX_BOOTSTRAPS;
  }

  private static void join(Thread thread, long timeoutMs) {
    if (thread == Thread.currentThread()) {
      return;
    }
    try {
      thread.join(timeoutMs);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
