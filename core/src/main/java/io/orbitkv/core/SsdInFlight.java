package io.orbitkv.core;

/**
 * Reads and writes in progress in each file. A file in which a look at the ages finds one older
 * than the bound is stalled: it is by-passed until everything that old has returned. The end of a
 * request ends a stall and begins none: what has returned beside it is told one after the other.
 */
final class SsdInFlight {
  /** Room beside reads and writes of blocks: tables, and segments that are being opened. */
  private static final int BESIDE = 64;

  private final int depth;
  private final long stallNs;
  private final int[][] request;
  private final long[][] sinceNs;
  private final int[] count;
  private final boolean[] stalled;

  long stalls;

  SsdInFlight(SsdConfig config) {
    this.depth = config.depth();
    this.stallNs = config.stallNs();
    int paths = config.paths();
    this.request = new int[paths][depth + BESIDE];
    this.sinceNs = new long[paths][depth + BESIDE];
    this.count = new int[paths];
    this.stalled = new boolean[paths];
  }

  boolean hasRoom(int path) {
    return count[path] < depth && !stalled[path];
  }

  /** True when there is room beyond what is kept free for reads. */
  boolean hasRoomForWrite(int path) {
    return count[path] < Math.max(1, depth / 2) && !stalled[path];
  }

  /** True when a table may be written, or a segment opened. */
  boolean hasRoomBeside(int path) {
    return count[path] < depth + BESIDE && !stalled[path];
  }

  void begin(int number, int path, long nowNs) {
    request[path][count[path]] = number;
    sinceNs[path][count[path]] = nowNs;
    count[path]++;
  }

  void end(int number, int path, long nowNs) {
    for (int i = 0; i < count[path]; i++) {
      if (request[path][i] == number) {
        count[path]--;
        request[path][i] = request[path][count[path]];
        sinceNs[path][i] = sinceNs[path][count[path]];
        stalled[path] = stalled[path] && isOverdue(path, nowNs);
        return;
      }
    }
    throw new IllegalStateException("SSD request is not in progress: number=" + number);
  }

  /** Looks at the ages; true when the file has just become stalled. */
  boolean check(int path, long nowNs) {
    boolean old = isOverdue(path, nowNs);
    boolean became = old && !stalled[path];
    stalled[path] = old;
    stalls += became ? 1 : 0;
    return became;
  }

  private boolean isOverdue(int path, long nowNs) {
    for (int i = 0; i < count[path]; i++) {
      if (nowNs - sinceNs[path][i] >= stallNs) {
        return true;
      }
    }
    return false;
  }

  boolean isStalled(int path) {
    return stalled[path];
  }

  /** Requests older than the bound, over all files. */
  int overdue(long nowNs) {
    int sum = 0;
    for (int path = 0; path < count.length; path++) {
      for (int i = 0; i < count[path]; i++) {
        sum += nowNs - sinceNs[path][i] >= stallNs ? 1 : 0;
      }
    }
    return sum;
  }

  int stalledPaths() {
    int sum = 0;
    for (boolean each : stalled) {
      sum += each ? 1 : 0;
    }
    return sum;
  }

  int total() {
    int sum = 0;
    for (int each : count) {
      sum += each;
    }
    return sum;
  }
}
