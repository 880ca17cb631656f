package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.linux.Affinity;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Poll;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that step operations whose callers do not wait, or wait no longer by spinning. One at a
 * time sleeps on the session's wake-ups, the others park.
 *
 * <p>For a while after the last operation an idle agent looks around at a short interval, so that
 * submitting costs no wake-up; then it parks until {@link #submitted()}. No failure of an operation
 * ends a thread.
 */
final class CopyAgents implements WakeUps {
  private static final System.Logger LOGGER = System.getLogger(CopyAgents.class.getName());
  private static final long WARM_NS = 50_000_000;
  private static final long WARM_PARK_NS = 200_000;
  private static final long FENCE_PARK_NS = 100_000;
  private static final long IDLE_PARK_NS = 1_000_000_000;
  private static final int MAX_SLEEP_MS = 100;

  private final EngineSession session;
  private final EventFd restoreWake;
  private final EventFd publishWake;
  private final EventFd kick = EventFd.create();
  private final ReentrantLock sleeper = new ReentrantLock();
  private final List<Thread> threads = new ArrayList<>();

  /** A second thread copies beside the first one only on a processor of its own. */
  private final boolean canHelp = Affinity.allowedCpus().length > 1;

  private QueryCalls queries;
  private volatile boolean closed;
  private volatile boolean sleeps;

  /** Agents that park for long, and look only when somebody wakes them. */
  private final AtomicInteger cold = new AtomicInteger();

  CopyAgents(EngineSession session, EventFd restoreWake, EventFd publishWake) {
    this.session = session;
    this.restoreWake = restoreWake;
    this.publishWake = publishWake;
  }

  void start(QueryCalls calls, int count, String name) {
    queries = calls;
    for (int i = 0; i < count; i++) {
      Thread thread = Thread.ofPlatform().daemon().name(name + "-copy-" + i).unstarted(this::run);
      threads.add(thread);
      thread.start();
    }
  }

  /** An operation was submitted; it is looked at soon. */
  void submitted() {
    if (sleeps || cold.get() != 0) {
      kickAgents();
    }
  }

  @Override
  public void kickAgents() {
    if (sleeps) {
      kick.signal();
    }
    unpark();
  }

  /** The session is over: whoever sleeps on a wake-up looks at once. */
  void sessionEnded() {
    restoreWake.signal();
    publishWake.signal();
    kickAgents();
  }

  private void unpark() {
    for (Thread thread : threads) {
      LockSupport.unpark(thread);
    }
  }

  /** True when another thread may run while this one spins. */
  boolean hasMoreProcessors() {
    return canHelp;
  }

  /** True while {@link #help} would find a share. */
  boolean canHelp(EngineOperation operation) {
    return canHelp && operation.hasShares();
  }

  /** Copies a share of an operation that another thread drives; false when there was none. */
  boolean help(EngineOperation operation) {
    if (!canHelp) {
      return false;
    }
    boolean helped = operation.help();
    if (helped && operation.waitsForHelpers()) {
      kickAgents(); // the driver may sleep since this thread was the last
    }
    return helped;
  }

  /** Wakes idle agents and who waits for the operation, when it begins to have shares for them. */
  void callHelpersOf(EngineOperation operation) {
    if (operation.takeCallForHelp() && canHelp) {
      operation.announce();
      kickAgents();
      operation.pausePoint("shared");
    }
  }

  @Override
  public void awaitRestore(int timeoutMs) {
    restoreWake.await(timeoutMs);
  }

  /** Ends the threads; false when one is still in a copy after the time given. May be repeated. */
  boolean close(long timeoutNs) {
    closed = true;
    kickAgents();
    long deadline = System.nanoTime() + timeoutNs;
    boolean ended = true;
    for (Thread thread : threads) {
      ended &= Uninterruptibly.join(thread, deadline - System.nanoTime());
    }
    if (ended) {
      kick.close();
    }
    return ended;
  }

  /** What one look at all operations found. */
  private static final class Pass {
    boolean worked;
    boolean restores;
    boolean publishes;
    boolean fences;
    boolean leftovers;
  }

  private void run() {
    Pass pass = new Pass();
    long lastWork = System.nanoTime();
    while (!closed) {
      try {
        look(pass);
        long now = System.nanoTime();
        if (pass.worked || pass.restores || pass.publishes) {
          lastWork = now;
        }
        if (!pass.worked && rest(pass, now - lastWork)) {
          lastWork = System.nanoTime();
        }
      } catch (Throwable t) { // an agent that ended would leave every operation standing
        if (!closed) {
          LOGGER.log(System.Logger.Level.ERROR, "a look at the operations failed", t);
          LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(MAX_SLEEP_MS));
        }
      }
    }
  }

  /** Steps on this thread what no agent drives, once round; for when they have ended. */
  void look() {
    look(new Pass());
  }

  private void look(Pass pass) {
    pass.worked = false;
    pass.restores = false;
    pass.publishes = false;
    pass.fences = false;
    pass.leftovers = false;
    if (session.hasPublishReplies()) {
      session.takePublishReplies();
    }
    for (int word = 0; word < session.activeWords(); word++) {
      long bits = session.activeBits(word);
      while (bits != 0) {
        int slot = (word << 6) + Long.numberOfTrailingZeros(bits);
        bits &= bits - 1;
        EngineOperation operation = session.operation(slot);
        if (operation != null) {
          drive(operation, pass);
        }
      }
    }
  }

  private void drive(EngineOperation operation, Pass pass) {
    if (operation.isAttended() || !operation.tryDrive()) {
      pass.worked |= help(operation);
      pass.leftovers = true;
      return;
    }
    try {
      while (operation.step(System.nanoTime())) {
        pass.worked = true;
        callHelpersOf(operation);
      }
    } finally {
      operation.endDrive();
    }
    if (operation.isDone()) {
      pass.leftovers |= !operation.isSettled();
    } else {
      pass.fences |= operation.awaitsFence();
      pass.restores |= operation instanceof RestoreOperation;
      pass.publishes |= operation instanceof PublishOperation;
    }
  }

  /** Waits for something to do; true when somebody called for it. */
  private boolean rest(Pass pass, long idleNs) {
    if (pass.fences) {
      LockSupport.parkNanos(this, FENCE_PARK_NS);
    } else if (pass.restores || pass.publishes) {
      if (sleeper.tryLock()) {
        try {
          sleep(pass);
        } finally {
          sleeper.unlock();
        }
      } else {
        LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(1));
      }
    } else if (idleNs < WARM_NS) {
      LockSupport.parkNanos(this, WARM_PARK_NS);
    } else {
      return parkCold(pass);
    }
    return false;
  }

  private boolean parkCold(Pass pass) {
    cold.incrementAndGet(); // SYNC: cold
    try {
      look(pass); // the re-check after the announcement
      if (pass.worked || pass.restores || pass.publishes || closed) {
        return true;
      }
      long parkNs = pass.leftovers ? TimeUnit.MILLISECONDS.toNanos(MAX_SLEEP_MS) : IDLE_PARK_NS;
      long began = System.nanoTime();
      LockSupport.parkNanos(this, parkNs);
      return System.nanoTime() - began < parkNs;
    } finally {
      cold.decrementAndGet();
    }
  }

  private void sleep(Pass pass) {
    boolean baton = pass.restores && queries.tryTakeBaton();
    announce(baton, 1);
    sleeps = true;
    try {
      look(pass); // the re-check after the announcement
      if (baton) {
        queries.readReplies();
      }
      if (!pass.worked && !pass.fences && !closed && (pass.restores || pass.publishes)) {
        boolean missedSignals = pass.restores && !baton;
        int[] fds = {kick.fd(), publishWake.fd(), baton ? restoreWake.fd() : -1};
        Poll.poll(fds, Poll.IN, missedSignals ? 1 : MAX_SLEEP_MS);
        kick.drain();
        publishWake.drain();
        if (baton) {
          restoreWake.drain();
        }
      }
    } finally {
      sleeps = false;
      announce(baton, 0);
      if (baton) {
        try {
          queries.readReplies();
        } finally {
          queries.returnBaton();
        }
      }
    }
  }

  private void announce(boolean baton, int value) {
    if (baton) {
      SleepFlag.set(session.channel(), ChannelDescriptor.RESTORE_SLEEPS_OFFSET, value);
    }
    SleepFlag.set(session.channel(), ChannelDescriptor.PUBLISH_SLEEPS_OFFSET, value);
    SleepFlag.fence(); // the re-check reads what came before the Manager's look
  }
}
