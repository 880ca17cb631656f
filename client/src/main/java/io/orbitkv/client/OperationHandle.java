package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/** What handles of both kinds share: waiting for an operation, at first by working on it. */
final class OperationHandle {
  /** How much longer a waiter spins for each block: about what the Manager takes to place it. */
  private static final long SPIN_NS_A_BLOCK = 1_000;

  /** Most that a waiter spins more. */
  private static final long MAX_MORE_SPIN_NS = 1_000_000;

  /**
   * How long a waiter for a part spins at least: mostly longer than the Manager takes to grant, and
   * another thread to copy the first part. Behind that part an engine computes, on a processor that
   * it would get back only after a whole turn of whatever ran on it meanwhile, milliseconds.
   */
  private static final long PART_SPIN_NS = 1_000_000;

  /** How often a waiter for a part lets others run, for the same reason not sooner. */
  private static final long PART_YIELD_NS = 300_000;

  private final EngineOperation operation;
  private final CopyAgents agents;
  private final long spinNs;

  OperationHandle(EngineOperation operation, CopyAgents agents, long spinNs) {
    this.operation = operation;
    this.agents = agents;
    this.spinNs = spinNs;
  }

  /**
   * How long a waiter spins before it sleeps. The Manager needs longer for a large operation, and a
   * waiter that sleeps loses three wake-ups: of an agent, by the Manager, and its own.
   */
  static long spinNs(ClientConfig config, EngineOperation operation) {
    return config.spinNs() + Math.min(MAX_MORE_SPIN_NS, operation.blocks() * SPIN_NS_A_BLOCK);
  }

  /** Waits until the operation is done; false when the time has passed. */
  boolean await(Duration timeout) {
    return await(() -> false, timeout, spinNs, QueryCalls.YIELD_NS);
  }

  /** Waits for a part of the operation, or until it is done; false when the time has passed. */
  boolean awaitPart(BooleanSupplier hasPart, Duration timeout) {
    return agents.hasMoreProcessors()
        ? await(hasPart, timeout, Math.max(spinNs, PART_SPIN_NS), PART_YIELD_NS)
        : await(hasPart, timeout, spinNs, QueryCalls.YIELD_NS);
  }

  private boolean await(BooleanSupplier condition, Duration timeout, long spinNs, long yieldNs) {
    long began = System.nanoTime();
    long timeoutNs = timeout.toNanos();
    if (!isMet(condition) && timeoutNs > 0) {
      drive(condition, began, timeoutNs, spinNs, yieldNs);
      if (!operation.isDone()) {
        agents.kickAgents(); // nobody else steps what was attended until now
      }
    }
    if (!isMet(condition)) {
      waitForAgent(condition, began, timeoutNs);
    }
    return isMet(condition);
  }

  private boolean isMet(BooleanSupplier condition) {
    return operation.isDone() || condition.getAsBoolean();
  }

  @SuppressWarnings("ThreadPriorityCheck") // both may share one processor
  private void drive(
      BooleanSupplier condition, long began, long timeoutNs, long spinNs, long yieldNs) {
    operation.attend(true);
    try {
      long now = began;
      long spinEnd = began + spinNs;
      long yielded = began;
      while (!isMet(condition) && now - began < timeoutNs && now - spinEnd < 0) {
        if (step(now)) {
          now = System.nanoTime();
          spinEnd = now + spinNs;
        } else if (now - yielded > yieldNs) {
          Thread.yield();
          now = System.nanoTime();
          yielded = now;
        } else {
          Thread.onSpinWait();
          now = System.nanoTime();
        }
      }
    } finally {
      operation.attend(false);
    }
  }

  private boolean step(long now) {
    if (!operation.tryDrive()) {
      return agents.help(operation);
    }
    try {
      boolean moved = operation.step(now);
      agents.callHelpersOf(operation);
      return moved;
    } finally {
      operation.endDrive();
    }
  }

  private void waitForAgent(BooleanSupplier condition, long began, long timeoutNs) {
    BooleanSupplier metOrShares = () -> isMet(condition) || agents.canHelp(operation);
    try {
      long left = timeoutNs - (System.nanoTime() - began);
      while (!isMet(condition) && left > 0) {
        if (!agents.help(operation)) {
          operation.awaitUntil(metOrShares, left);
        }
        left = timeoutNs - (System.nanoTime() - began);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  void cancel() {
    operation.cancel(Status.CANCELLED, "cancelled by the caller");
    agents.kickAgents();
  }
}
