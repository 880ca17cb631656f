package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Keeps one session with the Manager of this host, as long as there is one, and the registrations
 * in it. One thread owns the session: it connects, registers, notices the loss, waits until the
 * copies of the lost session have drained, unmaps its memory, and only then connects again.
 */
final class ManagerKeeper {
  private static final System.Logger LOGGER = System.getLogger(ManagerKeeper.class.getName());
  private static final long FIRST_WAIT_NS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LONGEST_WAIT_NS = TimeUnit.SECONDS.toNanos(5);
  private static final long LOOK_NS = TimeUnit.SECONDS.toNanos(1);
  private static final long SOCKET_LOOK_NS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long DRAIN_LOOK_NS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final PublishActivity NO_ACTIVITY = new PublishActivity(0, 0, 0, 0, false);
  private static final long DRAIN_WARNING_NS = TimeUnit.SECONDS.toNanos(10);

  /** Bounded calls that an end can have to wait for, one after the other. */
  private static final int CALLS_TO_END = 5;

  private final ClientConfig config;
  private final OverdueWarnings overdueWarnings = new OverdueWarnings();
  private final BackOff backOff;
  private final SocketWatch socket;
  private final Thread thread;

  /** Held to change {@link #client} and the registrations, and while one registers. */
  private final ReentrantLock lock = new ReentrantLock();

  private final List<ReconnectingRegistration> registrations = new CopyOnWriteArrayList<>();

  /** The session of now; null while there is none. */
  private volatile OrbitKvClient client;

  private volatile ConnectionState state = new ConnectionState(false, Instant.now(), 0, "");
  private volatile boolean closing;

  /** The session that has ended and whose copies may still run; null when there is none. */
  private volatile OrbitKvClient lost;

  // For the keeping thread, and before its start for the thread that starts it.
  private long waitNs;
  private long lostNs;
  private boolean warnedOfDrain;
  private boolean saidAway;
  private Status saidRefusal = Status.OK;

  ManagerKeeper(ClientConfig config) {
    this(config, new BackOff(FIRST_WAIT_NS, LONGEST_WAIT_NS));
  }

  ManagerKeeper(ClientConfig config, BackOff backOff) {
    this.config = config;
    this.backOff = backOff;
    this.socket = new SocketWatch(config.socket());
    this.thread = Thread.ofPlatform().daemon().name("orbitkv-keeper").unstarted(this::run);
  }

  /** Tries to connect once, and goes on trying in the background. */
  void start() {
    waitNs = turn();
    thread.start();
  }

  /** The session of now, or null. */
  OrbitKvClient client() {
    return client;
  }

  ConnectionState state() {
    return state;
  }

  /** Why a registration has no session, for messages. */
  String absence() {
    ConnectionState now = state;
    return (now.connected() ? "the Manager has not registered it yet" : "no Manager")
        + ": socket="
        + config.socket()
        + ", since="
        + now.since()
        + (now.lastError().isEmpty() ? "" : ", last error: " + now.lastError());
  }

  /** Lets the keeping thread look whether the session has ended. */
  void look() {
    LockSupport.unpark(thread);
  }

  boolean isClosing() {
    return closing;
  }

  /**
   * Adds a registration, and registers it when there is a Manager that can take it.
   *
   * @throws OrbitKvException when the Manager refuses it
   */
  void add(ReconnectingRegistration registration) {
    lock.lock();
    try {
      registrations.add(registration);
      OrbitKvClient now = client;
      if (now != null) {
        register(now, registration);
      }
    } catch (OrbitKvException e) {
      if (!passes(e)) {
        registrations.remove(registration);
        throw e;
      }
      look();
    } finally {
      lock.unlock();
    }
  }

  /** Registers a registration no more. */
  void forget(ReconnectingRegistration registration) {
    lock.lock();
    try {
      registrations.remove(registration);
    } finally {
      lock.unlock();
    }
  }

  private static void register(OrbitKvClient with, ReconnectingRegistration registration) {
    registration.registered(with.register(registration.form()));
  }

  /** Whether waiting helps: the Manager is not there, not ready or silent. */
  private static boolean passes(OrbitKvException e) {
    return switch (e.status()) {
      case SESSION_ENDED, NOT_READY, STOPPING -> true;
      default -> e instanceof OrbitKvTimeoutException;
    };
  }

  private void run() {
    while (!closing) {
      rest();
      try {
        waitNs = turn();
      } catch (Throwable t) { // without this thread no Manager would ever be found again
        LOGGER.log(System.Logger.Level.ERROR, "a look at the Manager failed", t);
        waitNs = LONGEST_WAIT_NS;
      }
    }
    end();
  }

  /** Waits for the time given, or until the session has ended or a Manager was started. */
  private void rest() {
    long began = System.nanoTime();
    long left = waitNs;
    while (left > 0 && !closing && !hasJustEnded()) {
      LockSupport.parkNanos(this, Math.min(left, SOCKET_LOOK_NS));
      left = isManagerNew() ? 0 : waitNs - (System.nanoTime() - began);
    }
  }

  private boolean isManagerNew() {
    return client == null && lost == null && socket.hasNewFile();
  }

  private boolean hasJustEnded() {
    OrbitKvClient now = client;
    return now != null && !now.isOpen();
  }

  /** What the publishes of the sessions of now and before are at. */
  PublishActivity publishActivity() {
    OrbitKvClient before = lost;
    OrbitKvClient now = client;
    if (now == null) {
      return before == null ? NO_ACTIVITY : before.publishActivity();
    }
    PublishActivity activity = now.publishActivity();
    return before == null ? activity : activity.plus(before.publishActivity());
  }

  /** Warns of overdue publishes, at most once a minute. */
  private void warnOfOverdue() {
    PublishActivity activity = publishActivity();
    if (overdueWarnings.isDue(activity, System.nanoTime())) {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "publishes have not ended within ms="
              + config.timeout().toMillis()
              + ", their pages stay in use: "
              + activity);
    }
  }

  /** Does what there is to do now; returns the nanoseconds until the next look. */
  private long turn() {
    warnOfOverdue();
    if (hasJustEnded()) {
      lose();
    }
    if (lost != null && !retire()) {
      return DRAIN_LOOK_NS;
    }
    if ((client == null && !connect()) || !registerAll()) {
      return isManagerNew() ? SOCKET_LOOK_NS : backOff.next();
    }
    backOff.reset();
    return LOOK_NS;
  }

  private void lose() {
    lock.lock();
    try {
      lost = client;
      client = null;
      registrations.forEach(ReconnectingRegistration::managerLost);
    } finally {
      lock.unlock();
    }
    lostNs = System.nanoTime();
    warnedOfDrain = false;
    String reason = lost.endReason();
    state = new ConnectionState(false, Instant.now(), state.reconnects(), reason);
    sayAway(reason);
  }

  private void sayAway(String reason) {
    if (!saidAway) {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "no Manager: socket="
              + config.socket()
              + ": "
              + reason
              + "; nothing is found or stored until one is there");
    }
    saidAway = true;
  }

  /** Unmaps the memory of the lost session; false while a copy still uses it. */
  private boolean retire() {
    if (lost.isIdle()) {
      lost.close();
    }
    if (lost.isClosed()) {
      lost = null;
      return true;
    }
    if (!warnedOfDrain && System.nanoTime() - lostNs > DRAIN_WARNING_NS) {
      warnedOfDrain = true;
      LOGGER.log(
          System.Logger.Level.WARNING,
          "a copy on the memory of the Manager that is gone still runs:"
              + " no connection to another one until it has ended");
    }
    return false;
  }

  private boolean connect() {
    socket.attempt();
    try {
      OrbitKvClient found = OrbitKvClient.connect(config, this::look);
      socket.answered();
      lock.lock();
      try {
        client = found;
      } finally {
        lock.unlock();
      }
      sayConnected(found);
      return true;
    } catch (OrbitKvException e) {
      if (!(e instanceof ManagerUnavailableException)) {
        socket.answered();
      }
      failed("connect", e);
      return false;
    }
  }

  private void sayConnected(OrbitKvClient found) {
    ConnectionState before = state;
    long reconnects = before.reconnects() + (saidAway ? 1 : 0);
    state = new ConnectionState(true, Instant.now(), reconnects, before.lastError());
    if (saidAway) {
      LOGGER.log(
          System.Logger.Level.INFO,
          "Manager is there again: socket=%s, epoch=%x"
              .formatted(config.socket(), found.epochLow()));
    }
    saidAway = false;
    saidRefusal = Status.OK;
  }

  /** Takes note of a failed attempt; a refusal is said once, and again when it becomes another. */
  private void failed(String what, OrbitKvException e) {
    ConnectionState now = state;
    state = new ConnectionState(now.connected(), now.since(), now.reconnects(), e.getMessage());
    if (passes(e)) {
      sayAway(e.getMessage());
    } else if (saidRefusal != e.status()) {
      saidRefusal = e.status();
      saidAway = true;
      LOGGER.log(
          System.Logger.Level.WARNING, what + " is refused: " + e.getMessage() + "; tried again");
    }
  }

  /** Registers what the session does not have yet; false when something is left. */
  private boolean registerAll() {
    boolean whole = true;
    for (ReconnectingRegistration registration : registrations) {
      lock.lock();
      try {
        if (registrations.contains(registration) && !registration.isRegistered()) {
          register(client, registration);
        }
      } catch (OrbitKvException e) {
        whole = false;
        failed("registration", e);
      } finally {
        lock.unlock();
      }
    }
    return whole;
  }

  /** Ends all sessions; the thread stays until their memory is unmapped. */
  private void end() {
    var _ = Thread.interrupted(); // it has done its work
    lock.lock();
    try {
      if (client != null) {
        client.close();
        registrations.forEach(ReconnectingRegistration::managerLost);
      }
      state =
          new ConnectionState(false, Instant.now(), state.reconnects(), "client has been closed");
    } finally {
      lock.unlock();
    }
    while (!isUnmapped(client) || !isUnmapped(lost)) {
      LockSupport.parkNanos(this, LOOK_NS);
    }
  }

  private static boolean isUnmapped(OrbitKvClient session) {
    if (session != null) {
      session.close();
    }
    return session == null || session.isClosed();
  }

  /** Ends all sessions, as {@link OrbitKvClient#close}; waits a bounded time for it. */
  void close() {
    closing = true;
    thread.interrupt();
    long boundNs = CALLS_TO_END * config.timeout().toNanos() + LOOK_NS;
    if (!Uninterruptibly.join(thread, boundNs)) {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "close: waited ms="
              + TimeUnit.NANOSECONDS.toMillis(boundNs)
              + " for a copy to end: its memory stays mapped until it does");
    }
  }
}
