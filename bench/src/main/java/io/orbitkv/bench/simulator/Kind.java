package io.orbitkv.bench.simulator;

/**
 * What can happen in one step. Steps are drawn without a look at the state; one that has no meaning
 * in it does nothing, so that any of them can be left out of a schedule.
 */
enum Kind {
  /** The Manager serves one session, or looks whether it has to wake up. */
  MANAGER(296, false),
  /** The Manager announces that it sleeps; its next turn looks once more and sleeps. */
  MANAGER_SLEEPS(14, false),
  /** The Manager learns of a socket that has ended or of a process that has exited. */
  MANAGER_LEARNS(20, false),
  /** The copy agent of an engine makes some steps of one operation and reads answers. */
  ENGINE(366, false),
  /** The copy agent announces that it sleeps. */
  ENGINE_SLEEPS(14, false),
  /** An engine connects and registers, with a new process where the former is dead. */
  CONNECT(10, false),
  PUBLISH(46, false),
  LOOKUP(64, false),
  RESTORE(68, false),
  RELEASE(6, false),
  CANCEL_QUERY(3, false),
  /** The device completes one request. */
  DISK(60, false),
  /** Everybody goes on without faults until each operation has ended. */
  CALM(1, false),
  CANCEL(12, true),
  /** An engine's process dies. */
  DEATH(1, true),
  /** A socket ends while both processes live. */
  SOCKET_END(1, true),
  UNREGISTER(2, true),
  /** The next wake-up of the Manager or of an engine is lost. */
  LOST_WAKE(8, true),
  /** The next wake-up comes late. */
  LATE_WAKE(6, true),
  /** A copy stands still for a while. */
  SLOW_COPY(6, true),
  CLOCK_JUMP(2, true),
  /** A command is sent again, perhaps after its operation has ended. */
  REPEATED_COMMAND(6, true),
  /** Leases are taken and kept, so that the pool fills with pinned blocks. */
  HOARD(5, true),
  /** A request to the device fails. */
  DISK_ERROR(2, true),
  /** A request takes long. */
  DISK_SLOW(3, true),
  /** A request does not return for two minutes, or before the end of the run. */
  DISK_STUCK(1, true),
  /** A namespace is cleared, whatever is in flight. */
  CLEAR(1, true);

  private static final int WEIGHTS = 1024;
  private static final Kind[] BY_NUMBER = byNumber();

  private final int weight;
  private final boolean fault;

  Kind(int weight, boolean fault) {
    this.weight = weight;
    this.fault = fault;
  }

  private static Kind[] byNumber() {
    Kind[] table = new Kind[WEIGHTS];
    int filled = 0;
    for (Kind kind : values()) {
      for (int i = 0; i < kind.weight; i++) {
        table[filled++] = kind;
      }
    }
    if (filled != WEIGHTS) {
      throw new IllegalStateException("weights=" + filled + ", must be " + WEIGHTS);
    }
    return table;
  }

  /** Kind of a step's number. */
  static Kind of(long number) {
    return BY_NUMBER[(int) number & (WEIGHTS - 1)];
  }

  /** True for what the protocol has to stand. */
  boolean isFault() {
    return fault;
  }
}
