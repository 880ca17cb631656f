package io.orbitkv.core;

/**
 * The listed rows of one size class by age and class: one list for each span of time and each class
 * of {@link ReuseState}. Spans are single publishes for the newest rows and widen with age, two
 * neighbours becoming one when both together are at most a quarter of their age. A span is never
 * split, so a row's list follows from its stamp and state.
 */
final class AgeCells {
  private static final int MAX_SPANS = 192;
  private static final int WIDTH_SHIFT = 2;
  private static final int NONE = -1;
  private static final int CLASS_BITS = 5;

  private final ReuseRows rows;
  private final int[] first = new int[MAX_SPANS << CLASS_BITS];
  private final int[] last = new int[MAX_SPANS << CLASS_BITS];
  private final int[] start = new int[MAX_SPANS];
  private final int[] place = new int[MAX_SPANS]; // of the span's lists, by age
  private final int[] filled = new int[MAX_SPANS]; // bit of each class that has rows, by age
  private final int[] freePlaces = new int[MAX_SPANS];
  private int freeCount;
  private int spans;
  private int listed;

  AgeCells(ReuseRows rows, int now) {
    this.rows = rows;
    for (int i = 0; i < MAX_SPANS; i++) {
      freePlaces[i] = MAX_SPANS - 1 - i;
    }
    freeCount = MAX_SPANS;
    open(now);
  }

  private void open(int now) {
    start[spans] = now;
    place[spans] = freePlaces[--freeCount];
    filled[spans] = 0;
    spans++;
  }

  /** Time has become {@code now}. */
  void tick(int now) {
    if (filled[spans - 1] == 0) {
      start[spans - 1] = now;
      return;
    }
    open(now);
    for (int i = 0; i + 2 < spans; i++) {
      int width = start[i + 2] - start[i];
      if (width <= (now - start[i + 2]) >> WIDTH_SHIFT) {
        merge(i);
        return;
      }
    }
    if (freeCount == 0) {
      merge(0);
    }
  }

  /** Appends the lists of the span after this one to its own. */
  private void merge(int span) {
    for (int left = filled[span + 1]; left != 0; left &= left - 1) {
      int c = Integer.numberOfTrailingZeros(left);
      int into = cell(span, c);
      int from = cell(span + 1, c);
      if ((filled[span] & (1 << c)) == 0) {
        first[into] = first[from];
      } else {
        rows.setNewer(last[into], first[from]);
        rows.setOlder(first[from], last[into]);
      }
      last[into] = last[from];
    }
    filled[span] |= filled[span + 1];
    freePlaces[freeCount++] = place[span + 1];
    int moved = spans - span - 2;
    System.arraycopy(start, span + 2, start, span + 1, moved);
    System.arraycopy(place, span + 2, place, span + 1, moved);
    System.arraycopy(filled, span + 2, filled, span + 1, moved);
    spans--;
  }

  private int cell(int span, int reuseClass) {
    return (place[span] << CLASS_BITS) | reuseClass;
  }

  /** Newest span that began at the stamp or before, else the oldest. */
  private int spanOf(int stamp) {
    int low = 0;
    int high = spans - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (stamp - start[middle] >= 0) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /** Lists a row by its stamp and state, as the next of its list to go or as the last. */
  void add(int row, boolean next) {
    int state = rows.state(row);
    rows.setState(row, state | ReuseState.LISTED);
    int c = ReuseState.classOf(state);
    int span = spanOf(rows.stamp(row));
    int cell = cell(span, c);
    listed++;
    if ((filled[span] & (1 << c)) == 0) {
      filled[span] |= 1 << c;
      first[cell] = row;
      last[cell] = row;
      rows.setOlder(row, NONE);
      rows.setNewer(row, NONE);
    } else if (next) {
      rows.setOlder(row, NONE);
      rows.setNewer(row, first[cell]);
      rows.setOlder(first[cell], row);
      first[cell] = row;
    } else {
      rows.setNewer(row, NONE);
      rows.setOlder(row, last[cell]);
      rows.setNewer(last[cell], row);
      last[cell] = row;
    }
  }

  /** Takes a row from its list; its stamp and state must be those that it was listed with. */
  void remove(int row) {
    int state = rows.state(row);
    rows.setState(row, state & ~ReuseState.LISTED);
    int c = ReuseState.classOf(state);
    int span = spanOf(rows.stamp(row));
    int cell = cell(span, c);
    int older = rows.older(row);
    int newer = rows.newer(row);
    listed--;
    if (older == NONE) {
      first[cell] = newer;
    } else {
      rows.setNewer(older, newer);
    }
    if (newer == NONE) {
      last[cell] = older;
    } else {
      rows.setOlder(newer, older);
    }
    if (older == NONE && newer == NONE) {
      filled[span] &= ~(1 << c);
    }
  }

  /**
   * Cell whose rows are worth least, those of the newest span last of all; -1 when nothing is
   * listed.
   */
  int leastWorth(ReuseStatistics statistics, int now) {
    int best = NONE;
    float least = Float.MAX_VALUE;
    for (int span = 0; span < spans; span++) {
      int end = span + 1 < spans ? start[span + 1] - 1 : now;
      boolean current = start[span] == now;
      if (filled[span] == 0 || (current && best != NONE)) {
        continue;
      }
      int step = ReuseStatistics.step(now - start[span] - (end - start[span]) / 2);
      for (int left = filled[span]; left != 0; left &= left - 1) {
        int c = Integer.numberOfTrailingZeros(left);
        float worth = statistics.worth(c, step);
        if (worth < least) {
          least = worth;
          best = (span << CLASS_BITS) | c;
        }
      }
    }
    return best;
  }

  /** Next row of a cell to go; -1 when it is empty. Cells move with every {@link #tick}. */
  int next(int found) {
    int span = found >> CLASS_BITS;
    int c = found & ((1 << CLASS_BITS) - 1);
    return (filled[span] & (1 << c)) == 0 ? NONE : first[cell(span, c)];
  }

  /** Begin of the oldest span with rows; {@code now} when nothing is listed. */
  int oldest(int now) {
    for (int span = 0; span < spans; span++) {
      if (filled[span] != 0) {
        return start[span];
      }
    }
    return now;
  }

  /** Rows that are listed. */
  int listed() {
    return listed;
  }
}
