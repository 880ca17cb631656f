package io.orbitkv.manager;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreOutput;
import io.orbitkv.core.CoreStats;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.linux.Epoll;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Signaller;
import io.orbitkv.storage.Recovered;
import io.orbitkv.storage.SsdStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The control thread: owns the core, serves the rings of every session, and takes everything else
 * in through an inbox. Only {@link #call}, {@link #start} and {@link #close} are for other threads.
 *
 * <p>While there is work it goes round without pause; after 25 µs without any it announces its
 * sleep in every channel, looks once more, and waits for a wake-up, at most 100 ms. A wake-up is a
 * hint: every record is looked at again each 100 ms. A round allocates nothing and takes no lock
 * unless there is something in the inbox.
 *
 * <p>A fault while a session is served ends that session and no other.
 */
final class ControlAgent implements CoreOutput, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ControlAgent.class);

  private static final long SPIN_NS = 25_000;
  private static final int ROUNDS_A_LOOK = 8;
  private static final long TICK_NS = 1_000_000;
  private static final long RECHECK_NS = 100_000_000;
  private static final int SLEEP_MS = 100;
  private static final int BLOCKED_SLEEP_MS = 1;
  private static final int STOPPING_SLEEP_MS = 5;
  private static final int COMMANDS_A_TURN = 64;

  /** Bytes of data of a turn's commands from which on the other sessions come first. */
  private static final int BYTES_A_TURN = 256 << 10;

  private static final long CONTROL_TOKEN = -1;
  private static final long JOIN_MS = 5_000;

  private final CacheCore core;
  private final EdgeCounters counters;
  private final Epoll epoll;
  private final EventFd wake; // the Manager's alone
  private final Signaller signaller;
  private final ConcurrentLinkedQueue<Runnable> inbox = new ConcurrentLinkedQueue<>();
  private final ControlledSession[] bySlot = new ControlledSession[Protocol.MAX_SESSIONS];
  private ControlledSession[] live = {};
  private final Arena bufferArena = Arena.ofShared();
  private final MemorySegment buffer = bufferArena.allocate(Protocol.MAX_SPAN_BYTES, 64);
  private final Command command = new Command();
  private final LogLimiter limiter = new LogLimiter();
  private final SsdStore ssd; // null without one
  private final SsdStore.Completion ssdCompletion = this::ssdCompleted;
  private final Thread thread;

  private long restoreWakes; // bit a slot
  private long publishWakes;
  private final ControlledSession[] settled = new ControlledSession[Protocol.MAX_SESSIONS];
  private int settledCount;
  private boolean replyBlocked;
  private boolean stopping;
  private long lastTickNs;
  private long lastRecheckNs;
  private CompletableFuture<Void> quiescence;
  private CompletableFuture<Void> flushed;
  private volatile boolean running = true;
  private volatile boolean ended;

  /** Whether no engine can make the thread wait. */
  boolean neverBlocks() {
    return signaller.neverBlocks();
  }

  /**
   * Creates the core and all that the thread needs; nothing runs yet.
   *
   * @param ssdConfig configuration of the SSD tier; null without one
   * @param ssd its files
   */
  ControlAgent(
      CoreConfig config, long epochLow, EdgeCounters counters, SsdConfig ssdConfig, SsdStore ssd) {
    this.counters = counters;
    this.ssd = ssd;
    this.core = new CacheCore(config, epochLow, this, ssdConfig, ssd);
    this.epoll = Epoll.create();
    try {
      this.wake = EventFd.create();
    } catch (Throwable t) {
      epoll.close();
      throw t;
    }
    try {
      epoll.add(wake.fd(), CONTROL_TOKEN);
      this.signaller = Signaller.create();
    } catch (Throwable t) {
      wake.close();
      epoll.close();
      throw t;
    }
    this.thread = Thread.ofPlatform().name("orbitkv-control").daemon().unstarted(this::run);
  }

  void start() {
    thread.start();
  }

  /** Takes in what the SSD files hold; before the start. */
  Recovered recover() {
    return ssd.recover(core.ssdRecovery());
  }

  /** Ends a sleep; for I/O threads. */
  void wakeUp() {
    wake.signal();
  }

  // ---- inbox: any thread ----

  /**
   * Has the control thread call the core.
   *
   * @return its result, or what it threw; {@link IllegalStateException} once the thread has ended
   */
  <T> CompletableFuture<T> call(Function<CacheCore, T> action) {
    CompletableFuture<T> result = new CompletableFuture<>();
    inbox.add(() -> {
      if (ended) {
        result.completeExceptionally(new IllegalStateException("the control thread has ended"));
        return;
      }
      try {
        result.complete(action.apply(core));
      } catch (Throwable t) { // the caller's to judge; the thread lives on
        result.completeExceptionally(t);
      }
    });
    wake.signal();
    if (ended) {
      drainInbox();
    }
    return result;
  }

  /** What the core holds. */
  CompletableFuture<CoreStats> stats() {
    return call(c -> c.stats(System.nanoTime()));
  }

  /** Serves a session from now on; {@link ControlledSession#settled} tells when it is over. */
  CompletableFuture<Void> open(
      ControlledSession session, String instanceId, String client, int pid, boolean mayPublish) {
    return call(c -> {
      if (!session.tryClaim()) {
        throw new IllegalStateException("the session was given up");
      }
      int wakeFd = session.memory.managerWake().fd();
      epoll.addEdge(wakeFd, session.slot); // never read: the engine could let a read block
      try {
        c.openSession(
            session.slot, session.table, instanceId, client, pid, mayPublish, System.nanoTime());
      } catch (Throwable t) { // a failed open leaves nothing behind
        epoll.remove(wakeFd);
        throw t;
      }
      bySlot[session.slot] = session;
      live = Arrays.copyOf(live, live.length + 1);
      live[live.length - 1] = session;
      return null;
    });
  }

  /** Withdraws a registration; completes when none of its operations is left. */
  CompletableFuture<Void> unregister(ControlledSession session, int id, int generation) {
    CompletableFuture<Void> done = new CompletableFuture<>();
    var _ =
        call(
                core -> {
                  withdraw(core, session, id, generation, done);
                  return null;
                })
            .whenComplete((_, failure) -> {
              if (failure != null) {
                done.completeExceptionally(failure);
              }
            });
    return done;
  }

  private void withdraw(
      CacheCore core,
      ControlledSession session,
      int id,
      int generation,
      CompletableFuture<Void> done) {
    if (bySlot[session.slot] != session) {
      done.complete(null);
      return;
    }
    session.withdrawals.put(id, done);
    try {
      core.unregister(session.slot, id, generation, System.nanoTime());
    } catch (RuntimeException e) {
      session.withdrawals.remove(id);
      throw e;
    }
  }

  /** The session's socket has ended. */
  CompletableFuture<Void> lose(ControlledSession session, SessionEnd reason) {
    return call(c -> {
      if (bySlot[session.slot] == session) {
        end(session, reason, "");
      }
      return null;
    });
  }

  /** The session's process has exited, and that is evidence. */
  CompletableFuture<Void> exited(ControlledSession session) {
    return call(c -> {
      if (bySlot[session.slot] == session) {
        c.processExited(session.slot, System.nanoTime());
      }
      return null;
    });
  }

  /** Closes admission; completes when nothing is in progress. */
  CompletableFuture<Void> beginStop() {
    CompletableFuture<Void> done = new CompletableFuture<>();
    var _ =
        call(
                c -> {
                  stopping = true;
                  quiescence = done;
                  c.beginStop(System.nanoTime());
                  return null;
                })
            .whenComplete((_, failure) -> {
              if (failure != null) {
                done.completeExceptionally(failure);
              }
            });
    return done;
  }

  /** Writes what is resident to SSD; completes when all that is wanted there is there. */
  CompletableFuture<Void> flushSsd() {
    CompletableFuture<Void> done = new CompletableFuture<>();
    var _ =
        call(
                c -> {
                  flushed = done;
                  c.beginSsdFlush();
                  return null;
                })
            .whenComplete((_, failure) -> {
              if (failure != null) {
                done.completeExceptionally(failure);
              }
            });
    return done;
  }

  /** Tells every engine that its session is over. */
  CompletableFuture<Void> endSessions() {
    return call(_ -> {
      for (ControlledSession session : live) {
        if (session.open) {
          end(session, SessionEnd.STOPPING, "");
        }
      }
      return null;
    });
  }

  /**
   * Ends the thread and closes what it used; sessions that are left count as settled. Idempotent.
   */
  @Override
  public void close() {
    running = false;
    wake.signal();
    boolean interrupted = false;
    try {
      thread.join(JOIN_MS);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (thread.isAlive()) {
      throw new IllegalStateException("the control thread does not end: waited ms=" + JOIN_MS);
    }
    ended = true;
    drainInbox();
    for (ControlledSession session : live) {
      session.settle(signaller);
    }
    live = new ControlledSession[0];
    signaller.close();
    epoll.close();
    wake.close();
    if (bufferArena.scope().isAlive()) {
      bufferArena.close();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void drainInbox() {
    for (Runnable next = inbox.poll(); next != null; next = inbox.poll()) {
      next.run();
    }
  }

  // ---- duty cycle: control thread ----

  private void run() {
    long lastWorkNs = System.nanoTime();
    while (running) {
      long now = System.nanoTime();
      try {
        if (work(now)) {
          lastWorkNs = now;
        } else if (now - lastWorkNs >= SPIN_NS && sleep()) {
          lastWorkNs = System.nanoTime();
        }
      } catch (Throwable t) { // whatever it is, the other sessions must be served
        fault("round of the control thread", t);
      }
    }
  }

  /**
   * Goes round until there was something to do, at most a few times between two looks at the clock.
   */
  private boolean work(long now) {
    for (int round = 0; round < ROUNDS_A_LOOK; round++) {
      if (doWork(now) > 0) {
        return true;
      }
      Thread.onSpinWait();
    }
    return false;
  }

  /**
   * One round.
   *
   * @param now time at which it begins
   */
  int doWork(long now) {
    replyBlocked = false;
    int work = inbox.isEmpty() ? 0 : takeInbox();
    boolean recheck = now - lastRecheckNs >= RECHECK_NS;
    for (ControlledSession session : live) {
      work += serve(session, recheck, now);
    }
    if (recheck) {
      lastRecheckNs = now;
    }
    if (ssd != null) {
      work += ssd.poll(ssdCompletion); // before the tick: what is done by now is not overdue
    }
    if (now - lastTickNs >= TICK_NS) {
      lastTickNs = now;
      core.tick(now);
    }
    if (ssd != null) {
      work += stepSsd(now);
    }
    flush();
    if (quiescence != null && core.isQuiescent()) {
      quiescence.complete(null);
      quiescence = null;
    }
    return work;
  }

  private int stepSsd(long now) {
    int work = core.ssdStep(now);
    if (flushed != null && core.isSsdFlushed()) {
      flushed.complete(null);
      flushed = null;
    }
    return work;
  }

  private void ssdCompleted(int request, int result) {
    core.ssdCompleted(request, result, System.nanoTime());
  }

  private int takeInbox() {
    int work = 0;
    while (!inbox.isEmpty()) {
      flush(); // a slot that was settled before may be taken by the next
      inbox.remove().run();
      work++;
    }
    return work;
  }

  private int serve(ControlledSession session, boolean recheck, long now) {
    try {
      int work = serveRing(session, session.query, now);
      work += serveRing(session, session.publish, now);
      long drains = session.table.drainsAcquire();
      if (drains != session.drainsSeen) {
        session.drainsSeen = drains;
        work += core.pollGrants(session.slot, now) + 1;
      }
      if (recheck) {
        work += core.recheckGrants(session.slot, now);
      }
      wakeEngines();
      return work;
    } catch (ProtocolException e) {
      end(session, SessionEnd.VIOLATION, e.getMessage());
    } catch (Throwable t) { // ends this session and no other
      fault("session slot=" + session.slot + ", " + session.name, t);
      end(session, SessionEnd.INTERNAL, String.valueOf(t.getMessage()));
    }
    return 1;
  }

  private int serveRing(ControlledSession session, ControlledSession.RingPair rings, long now) {
    int work = 0;
    int bytes = 0;
    while (work < COMMANDS_A_TURN
        && bytes < BYTES_A_TURN
        && session.open
        && rings.requests.hasNext()) {
      if (!rings.replies.hasRoom() || !rings.replyBytes.hasRoom(Protocol.MAX_SPAN_BYTES)) {
        replyBlocked = true; // the command waits in its place until the engine reads its replies
        break;
      }
      rings.requests.tryRead(command);
      int length = rings.take(command, buffer);
      core.execute(session.slot, rings.requestRing, command, buffer, length, now);
      bytes += length;
      work++;
    }
    return work;
  }

  /**
   * Ends the session for the engine and the core; both may know it already. What was granted stays
   * until it is settled.
   */
  private void end(ControlledSession session, SessionEnd reason, String detail) {
    if (session.open) {
      counters.sessionEnded(reason); // first, so that who sees the end sees the count
      if (reason == SessionEnd.STOPPING) {
        session.closeLatched(signaller);
      } else {
        session.close(signaller);
      }
      logEnd(session, reason, detail);
    }
    try {
      core.sessionLost(session.slot, System.nanoTime());
    } catch (Throwable t) { // the session is closed in any case
      fault("end of session slot=" + session.slot + ", " + session.name, t);
    }
  }

  private void logEnd(ControlledSession session, SessionEnd reason, String detail) {
    if (reason == SessionEnd.VIOLATION || reason == SessionEnd.INTERNAL) {
      long dropped = limiter.tryPass();
      if (dropped >= 0) {
        LOG.warn(
            "session ended: slot={}, {}, reason={}, detail=\"{}\", similar lines dropped={}",
            session.slot,
            session.name,
            Labels.of(reason),
            detail,
            dropped);
      }
    } else {
      LOG.info(
          "session ended: slot={}, {}, reason={}", session.slot, session.name, Labels.of(reason));
    }
  }

  private void fault(String where, Throwable t) {
    counters.internalError();
    if (limiter.tryPass() >= 0) {
      LOG.error("internal fault: {}", where, t);
    }
  }

  /** Wakes engines and lets settled sessions go. */
  private void flush() {
    wakeEngines();
    while (settledCount > 0) {
      settledCount--;
      remove(settled[settledCount]);
    }
  }

  private void wakeEngines() {
    if ((restoreWakes | publishWakes) == 0) {
      return;
    }
    SleepFlag.fence(); // what was written must be visible before the announcements are read
    for (; restoreWakes != 0; restoreWakes &= restoreWakes - 1) {
      ControlledSession session = bySlot[Long.numberOfTrailingZeros(restoreWakes)];
      if (session != null && sleeps(session, ChannelDescriptor.RESTORE_SLEEPS_OFFSET)) {
        signaller.signal(session.memory.restoreWake());
      }
    }
    for (; publishWakes != 0; publishWakes &= publishWakes - 1) {
      ControlledSession session = bySlot[Long.numberOfTrailingZeros(publishWakes)];
      if (session != null && sleeps(session, ChannelDescriptor.PUBLISH_SLEEPS_OFFSET)) {
        signaller.signal(session.memory.publishWake());
      }
    }
  }

  private static boolean sleeps(ControlledSession session, long announcement) {
    return SleepFlag.isAnnounced(session.channel, announcement);
  }

  private void remove(ControlledSession session) {
    if (bySlot[session.slot] == session) {
      bySlot[session.slot] = null;
    }
    live = Arrays.stream(live).filter(other -> other != session).toArray(ControlledSession[]::new);
    try {
      epoll.remove(session.memory.managerWake().fd());
    } finally {
      session.settle(signaller);
    }
  }

  /** Waits for a wake-up, or for work that came meanwhile; false when the time passed. */
  private boolean sleep() {
    for (ControlledSession session : live) {
      session.announceSleep(1);
    }
    SleepFlag.fence(); // the announcements must be visible before the last look
    boolean woken = doWork(System.nanoTime()) > 0 || !running;
    if (!woken) {
      woken = await(sleepMs());
    }
    for (ControlledSession session : live) {
      session.announceSleep(0);
    }
    return woken;
  }

  private int sleepMs() {
    if (replyBlocked || core.ssdIsBusy()) {
      return BLOCKED_SLEEP_MS;
    }
    return stopping ? STOPPING_SLEEP_MS : SLEEP_MS;
  }

  private boolean await(int timeoutMs) {
    int ready = epoll.await(timeoutMs);
    for (int i = 0; i < ready; i++) {
      if (epoll.token(i) == CONTROL_TOKEN) {
        wake.drain();
      }
    }
    return ready > 0;
  }

  // ---- effects of the core: control thread ----

  @Override
  public void reply(int session, int ring, Command reply) {
    ControlledSession to = bySlot[session];
    if (!to.byReplyRing(ring).replies.tryWrite(reply)) {
      if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
        return; // an engine that reads no replies is told by the record alone
      }
      throw new IllegalStateException("reply ring=" + ring + " has no room");
    }
    if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
      wakePublish(session);
    } else {
      wakeRestore(session);
    }
  }

  @Override
  public ByteRing.Producer replyBytes(int session, int ring) {
    return bySlot[session].byReplyRing(ring).replyBytes;
  }

  @Override
  public void wakeRestore(int session) {
    restoreWakes |= 1L << session;
  }

  @Override
  public void wakePublish(int session) {
    publishWakes |= 1L << session;
  }

  @Override
  public void sessionSettled(int session) {
    ControlledSession over = bySlot[session];
    if (over != null && !over.settling) {
      over.settling = true;
      settled[settledCount++] = over; // itself: its slot may be another's by the time it is removed
    }
  }

  @Override
  public void unregistered(int session, int registrationId) {
    ControlledSession owner = bySlot[session];
    CompletableFuture<Void> done = owner == null ? null : owner.withdrawals.remove(registrationId);
    if (done != null) {
      done.complete(null);
    }
  }

  @Override
  public void violation(int session, String what) {
    ControlledSession from = bySlot[session];
    if (from != null && from.open) {
      counters.sessionEnded(SessionEnd.VIOLATION);
      from.close(signaller);
      logEnd(from, SessionEnd.VIOLATION, what);
    }
  }
}
