package io.orbitkv.client;

/** Where waiters of the engine sleep until the Manager signals. Every wait has a bound. */
interface WakeUps {
  /** Waits for restore-wake; the caller has announced it. */
  void awaitRestore(int timeoutMs);

  /** Some operation may have moved while its agent did not listen. */
  void kickAgents();
}
