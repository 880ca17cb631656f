package io.orbitkv.bench.simulator;

/** Sleep of the Manager or of an engine's copy agent, and the wake-ups that reach it. */
final class Sleeper {
  /** No time. */
  static final long NEVER = Long.MAX_VALUE;

  private enum State {
    AWAKE,
    ANNOUNCED,
    ASLEEP
  }

  private final World world;
  private State state = State.AWAKE;
  private long signalAtNs = NEVER;
  private long wakeAtNs;
  private boolean losesNext;
  private long delayNs;

  Sleeper(World world) {
    this.world = world;
  }

  boolean isAwake() {
    return state == State.AWAKE;
  }

  boolean isAsleep() {
    return state == State.ASLEEP;
  }

  /** True when a wake-up has come or the longest sleep is over. */
  boolean isDue() {
    return world.now >= wakeAtNs || world.now >= signalAtNs;
  }

  /** True when a wake-up has come. */
  boolean isSignalled() {
    return world.now >= signalAtNs;
  }

  void announce() {
    state = State.ANNOUNCED;
  }

  void sleepUntil(long timeNs) {
    state = State.ASLEEP;
    wakeAtNs = timeNs;
  }

  void awake() {
    state = State.AWAKE;
    signalAtNs = NEVER;
  }

  /** Somebody wakes it. */
  void signal() {
    if (losesNext) {
      losesNext = false;
      world.counts.faults.add(Kind.LOST_WAKE);
      world.note(() -> "a wake-up is lost");
      return;
    }
    if (delayNs > 0) {
      world.counts.faults.add(Kind.LATE_WAKE);
      world.note(() -> "a wake-up is late");
    }
    signalAtNs = Math.min(signalAtNs, world.now + delayNs);
    delayNs = 0;
  }

  void loseNext() {
    losesNext = true;
  }

  void delayNext(long ns) {
    delayNs = ns;
  }
}
