package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Memory;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Poll;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that step operations whose callers do not wait, or wait no longer by spinning. One at a
 * time sleeps on the session's wake-ups, the others park.
 *
 * <p>For a while after the last operation an idle agent looks around at a short interval, so that
 * submitting costs no wake-up; then it parks until {@link #submitted()}.
 */
final class CopyAgents implements WakeUps {
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

  private QueryCalls queries;
  private volatile boolean closed;
  private volatile boolean sleeps;
  private volatile boolean cold;

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
    if (cold) {
      unpark();
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

  @Override
  public void awaitRestore(int timeoutMs) {
    restoreWake.await(timeoutMs);
  }

  /** Ends the threads; false when one is still in a copy after the time given. */
  boolean close(long timeoutNs) {
    closed = true;
    kickAgents();
    long deadline = System.nanoTime() + timeoutNs;
    boolean ended = true;
    try {
      for (Thread thread : threads) {
        long left = Math.max(1, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()));
        thread.join(left);
        ended &= !thread.isAlive();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      ended = false;
    }
    kick.close();
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
        if (!pass.worked) {
          rest(pass, now - lastWork);
        }
      } catch (IllegalStateException e) {
        return; // the session's memory was unmapped
      }
    }
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
      pass.leftovers = true;
      return;
    }
    try {
      while (operation.step(System.nanoTime())) {
        pass.worked = true;
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

  private void rest(Pass pass, long idleNs) {
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
      parkCold(pass);
    }
  }

  private void parkCold(Pass pass) {
    if (pass.leftovers) {
      LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(MAX_SLEEP_MS));
      return;
    }
    cold = true;
    if (session.isIdle() && !closed) {
      LockSupport.parkNanos(this, IDLE_PARK_NS);
    }
    cold = false;
  }

  private void sleep(Pass pass) {
    boolean baton = pass.restores && queries.tryTakeBaton();
    announce(baton, 1);
    sleeps = true;
    try {
      boolean missedSignals = pass.restores && !baton;
      look(pass); // the re-check after the announcement
      if (baton) {
        queries.readReplies();
      }
      if (!pass.worked && !closed && (pass.restores || pass.publishes)) {
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
        queries.readReplies();
        queries.returnBaton();
      }
    }
  }

  private void announce(boolean baton, int value) {
    if (baton) {
      Memory.putIntVolatile(
          session.channel(), ChannelDescriptor.RESTORE_SLEEPS_OFFSET, value); // SYNC: sleeps
    }
    Memory.putIntVolatile(
        session.channel(), ChannelDescriptor.PUBLISH_SLEEPS_OFFSET, value); // SYNC: sleeps
  }
}
