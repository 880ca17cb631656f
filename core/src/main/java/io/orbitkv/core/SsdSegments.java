package io.orbitkv.core;

import java.util.Arrays;

/**
 * The segments of all files: which are open, closed or empty, what is in each, and which one gives
 * way to new blocks. A segment is emptied only while no read of it is in progress.
 */
final class SsdSegments {
  /** What a segment is. */
  enum State {
    /** Holds nothing. */
    FREE,
    /** Its table is being made empty on disk. */
    OPENING,
    /** Takes blocks. */
    OPEN,
    /** Takes no more blocks; its last table may still be written. */
    CLOSED,
    /** Its rows are being taken out, a few at a time. */
    EMPTYING,
    /** Set aside: the device does not write or read it. */
    RETIRED
  }

  /** Oldest segments among which the one that was read least gives way. */
  private static final int CANDIDATES = 8;

  /** Failures of one segment after which it is set aside. */
  private static final int MAX_FAILURES = 4;

  private final int[] pathOfSegment;
  private final int paths;
  private final State[] state;
  private final long[] generation;
  private final long[] onDisk; // generation of the table that may be on disk; 0 for none
  private final int[] firstRow;
  private final int[] readers;
  private final int[] recentReads;
  private final byte[] failures;
  private final boolean[] retire;
  private int toRetire;
  private final boolean[] unsettled;
  private final int[] freeOfPath;
  private long nextGeneration = 1;

  SsdSegments(SsdConfig config) {
    this.pathOfSegment = config.pathOfSegment();
    this.paths = config.paths();
    int count = pathOfSegment.length;
    this.state = new State[count];
    Arrays.fill(state, State.FREE);
    this.generation = new long[count];
    this.onDisk = new long[count];
    this.firstRow = new int[count];
    this.readers = new int[count];
    this.recentReads = new int[count];
    this.failures = new byte[count];
    this.retire = new boolean[count];
    this.unsettled = new boolean[count];
    this.freeOfPath = new int[paths];
    for (int path : pathOfSegment) {
      freeOfPath[path]++;
    }
  }

  int count() {
    return state.length;
  }

  int path(int segment) {
    return pathOfSegment[segment];
  }

  State state(int segment) {
    return state[segment];
  }

  int count(State wanted) {
    int sum = 0;
    for (State each : state) {
      sum += each == wanted ? 1 : 0;
    }
    return sum;
  }

  /** A segment was found on disk. */
  void recovered(int segment, long itsGeneration) {
    move(segment, State.CLOSED);
    generation[segment] = itsGeneration;
    onDisk[segment] = itsGeneration;
    skipTo(itsGeneration + 1);
  }

  /** No segment gets a smaller generation from now on. */
  void skipTo(long least) {
    nextGeneration = Math.max(nextGeneration, least);
  }

  private void move(int segment, State next) {
    freeOfPath[pathOfSegment[segment]] +=
        (next == State.FREE ? 1 : 0) - (state[segment] == State.FREE ? 1 : 0);
    state[segment] = next;
  }

  int free(int path) {
    return freeOfPath[path];
  }

  /** Takes an empty segment of a path, which gets the next generation; −1 when there is none. */
  int beginOpen(int path) {
    if (freeOfPath[path] == 0) {
      return -1;
    }
    for (int i = 0; i < state.length; i++) {
      if (state[i] == State.FREE && pathOfSegment[i] == path) {
        move(i, State.OPENING);
        generation[i] = nextGeneration++;
        failures[i] = 0;
        unsettled[i] = true;
        recentReads[i] = 0;
        return i;
      }
    }
    return -1;
  }

  void opened(int segment) {
    move(segment, State.OPEN);
  }

  /** Its former table is not on disk any more. */
  void blanked(int segment) {
    onDisk[segment] = generation[segment];
  }

  void close(int segment) {
    move(segment, State.CLOSED);
  }

  /** Its last table is written. */
  void settled(int segment) {
    unsettled[segment] = false;
  }

  boolean isUnsettled(int segment) {
    return unsettled[segment];
  }

  /** True when neither a read nor a write of the segment is in progress. */
  private boolean isQuiet(int segment) {
    return readers[segment] == 0 && !unsettled[segment];
  }

  /**
   * Begins to empty a closed segment of a path: of the oldest few the one that was read least.
   *
   * @return the segment; −1 when none can be
   */
  int beginEmptying(int path) {
    int chosen = -1;
    long after = 0;
    for (int i = 0; i < CANDIDATES; i++) {
      int oldest = oldestAfter(path, after);
      if (oldest < 0) {
        break;
      }
      after = generation[oldest];
      if (chosen < 0 || recentReads[oldest] < recentReads[chosen]) {
        chosen = oldest;
      }
    }
    if (chosen >= 0) {
      move(chosen, State.EMPTYING);
    }
    return chosen;
  }

  private int oldestAfter(int path, long after) {
    int oldest = -1;
    for (int i = 0; i < state.length; i++) {
      boolean possible =
          state[i] == State.CLOSED
              && pathOfSegment[i] == path
              && isQuiet(i)
              && generation[i] > after;
      if (possible && (oldest < 0 || generation[i] < generation[oldest])) {
        oldest = i;
      }
    }
    return oldest;
  }

  /** Its rows are gone: it may be opened again, unless it is bad. */
  void emptied(int segment) {
    toRetire -= retire[segment] ? 1 : 0;
    move(segment, retire[segment] ? State.RETIRED : State.FREE);
  }

  /** Begins to empty a given closed segment; false while it is read. */
  boolean tryEmpty(int segment) {
    if (state[segment] != State.CLOSED || !isQuiet(segment)) {
      return false;
    }
    move(segment, State.EMPTYING);
    return true;
  }

  /** True when blocks of the segment may be read. */
  boolean isReadable(int segment) {
    return state[segment] == State.OPEN || state[segment] == State.CLOSED;
  }

  void addReader(int segment) {
    readers[segment]++;
    recentReads[segment]++;
  }

  void removeReader(int segment) {
    readers[segment]--;
  }

  /** Lets reads of long ago count less. */
  void age() {
    for (int i = 0; i < recentReads.length; i++) {
      recentReads[i] >>= 1;
    }
  }

  /** The device failed; true when the segment is to be set aside. */
  boolean failed(int segment) {
    if (++failures[segment] >= MAX_FAILURES && !retire[segment]) {
      retire[segment] = true;
      toRetire++;
    }
    return retire[segment];
  }

  /** A bad segment that still holds rows; −1 when there is none. */
  int badToEmpty() {
    for (int i = 0; toRetire > 0 && i < state.length; i++) {
      if (retire[i] && state[i] == State.CLOSED && isQuiet(i)) {
        return i;
      }
    }
    return -1;
  }

  /** First row of the segment, plus one; 0 for none. */
  int firstRow(int segment) {
    return firstRow[segment];
  }

  void setFirstRow(int segment, int row) {
    firstRow[segment] = row;
  }

  long generation(int segment) {
    return generation[segment];
  }

  long nextGeneration() {
    return nextGeneration;
  }

  /**
   * Generation of the oldest table that a restart may find: that of an empty segment stays on disk
   * until the segment is opened again.
   */
  long oldestGeneration() {
    long oldest = nextGeneration;
    for (long each : onDisk) {
      oldest = each == 0 ? oldest : Math.min(oldest, each);
    }
    return oldest;
  }
}
