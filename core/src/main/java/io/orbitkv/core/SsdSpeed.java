package io.orbitkv.core;

/**
 * How fast each file is read, measured over the time in which reads were in progress. A file below
 * the floor is by-passed: computing the blocks again takes less time. After a while it is measured
 * again.
 */
final class SsdSpeed {
  private static final long WINDOW_BYTES = 32L << 20;
  private static final long WINDOW_NS = 1_000_000_000L;
  private static final long TRIAL_AFTER_NS = 30_000_000_000L;
  private static final double NS = 1e9;

  private final long floor;
  private final long[] bytesPerSecond;
  private final boolean[] slow;
  private final long[] trialAtNs; // 0 until the first tick of a slow file
  private final int[] reads;
  private final long[] busySinceNs; // when the last read began or ended
  private final long[] windowNs;
  private final long[] windowBytes;

  SsdSpeed(SsdConfig config) {
    int paths = config.paths();
    this.floor = config.readFloor();
    this.bytesPerSecond = config.startSpeeds().clone();
    this.slow = new boolean[paths];
    this.trialAtNs = new long[paths];
    this.reads = new int[paths];
    this.busySinceNs = new long[paths];
    this.windowNs = new long[paths];
    this.windowBytes = new long[paths];
    for (int path = 0; path < paths; path++) {
      slow[path] = bytesPerSecond[path] < floor;
    }
  }

  /** A read begins. */
  void begin(int path, long nowNs) {
    if (reads[path]++ > 0) {
      return;
    }
    if (nowNs - busySinceNs[path] >= TRIAL_AFTER_NS) { // what was measured then is too old
      clearWindow(path);
    }
    busySinceNs[path] = nowNs;
  }

  /** A read has ended, with so many bytes. */
  void end(int path, long bytes, long nowNs) {
    reads[path]--;
    windowNs[path] += nowNs - busySinceNs[path];
    busySinceNs[path] = nowNs;
    windowBytes[path] += bytes;
    if (windowBytes[path] >= WINDOW_BYTES || windowNs[path] >= WINDOW_NS) {
      bytesPerSecond[path] = (long) (windowBytes[path] * NS / Math.max(1, windowNs[path]));
      clearWindow(path);
      slow[path] = bytesPerSecond[path] < floor;
      trialAtNs[path] = 0;
    }
  }

  private void clearWindow(int path) {
    windowBytes[path] = 0;
    windowNs[path] = 0;
  }

  /** Lets time pass: what is slow gets a trial of one window now and then. */
  void tick(long nowNs) {
    for (int path = 0; path < slow.length; path++) {
      if (slow[path] && trialAtNs[path] == 0) {
        trialAtNs[path] = nowNs + TRIAL_AFTER_NS;
      } else if (slow[path] && nowNs - trialAtNs[path] >= 0) {
        slow[path] = false;
        trialAtNs[path] = 0;
      }
    }
  }

  boolean isSlow(int path) {
    return slow[path];
  }

  int slowPaths() {
    int sum = 0;
    for (boolean each : slow) {
      sum += each ? 1 : 0;
    }
    return sum;
  }

  /** Bytes a second of each file, as last measured. */
  long[] bytesPerSecond() {
    return bytesPerSecond.clone();
  }
}
