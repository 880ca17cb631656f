package io.orbitkv.core;

/**
 * The listed rows of one size class by age and class: one list, a cell, for each span of time and
 * each class of {@link ReuseState}. Spans are single publishes for the newest rows and widen with
 * age, two neighbours becoming one when both together are at most a quarter of their age. A span is
 * never split, so a row's list follows from its stamp and state. Each span has a place for its
 * lists that it keeps until it becomes one with an older neighbour.
 *
 * <p>Which cells are worth least is found by looking at all of them, once for some evictions; time
 * may go on meanwhile. A step of time and an eviction so take a bounded time that does not depend
 * on the number of rows.
 */
final class AgeCells {
  private static final int MAX_SPANS = 192;
  private static final int WIDTH_SHIFT = 2;
  private static final int NONE = -1;
  private static final int CLASS_BITS = 5;
  private static final int CLASS_MASK = (1 << CLASS_BITS) - 1;

  /** Pairs of spans that are looked at in each step of time; one span is opened in each. */
  private static final int PAIRS_A_TICK = 8;

  /** Evictions after which the ranking is made again when time has gone on, and at any rate. */
  private static final int FEWEST_USES = 8;

  private static final int MOST_USES = 32;

  /** What came last does not go before it is this share of the rows old, as a power of two. */
  private static final int SHIELD_SHIFT = 4;

  /** Rows worth up to so many times as much as the least ones count as worth about the same. */
  private static final float NEAR = 2;

  private final ReuseRows rows;
  private final int[] first = new int[MAX_SPANS << CLASS_BITS];
  private final int[] last = new int[MAX_SPANS << CLASS_BITS];
  private final int[] filled = new int[MAX_SPANS]; // of a place: bit of each class that has rows
  private final int[] start = new int[MAX_SPANS]; // of a span, the oldest first
  private final int[] place = new int[MAX_SPANS]; // of a span
  private final long[] addedBefore = new long[MAX_SPANS]; // rows that came before a span began
  private final int[] freePlaces = new int[MAX_SPANS];
  private final CellRanking ranking = new CellRanking();
  private int freeCount;
  private int spans;
  private int pairHand;
  private int ranked; // place in the ranking
  private int rankedAt;
  private int uses; // of the ranking
  private int youngFrom; // begin of the first span whose rows were too young for it
  private int listed;
  private int resident;
  private long added;

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
    addedBefore[spans] = added;
    spans++;
  }

  /** Time has become {@code now}. */
  void tick(int now) {
    if (filled[place[spans - 1]] == 0) {
      start[spans - 1] = now;
      addedBefore[spans - 1] = added;
      return;
    }
    open(now);
    for (int i = 0; i < PAIRS_A_TICK; i++) {
      pairHand = pairHand > 0 ? pairHand - 1 : Math.max(0, spans - 3);
      if (isNarrow(pairHand, now)) {
        merge(pairHand);
      }
    }
    if (freeCount == 0) {
      merge(0);
    }
  }

  /** True when the span and the next one may become one. */
  private boolean isNarrow(int span, int now) {
    return span + 2 < spans
        && start[span + 2] - start[span] <= (now - start[span + 2]) >> WIDTH_SHIFT;
  }

  /** Appends the lists of the span after this one to its own. */
  private void merge(int span) {
    int to = place[span];
    int gone = place[span + 1];
    for (int left = filled[gone]; left != 0; left &= left - 1) {
      int c = Integer.numberOfTrailingZeros(left);
      int into = cell(to, c);
      int from = cell(gone, c);
      if ((filled[to] & (1 << c)) == 0) {
        first[into] = first[from];
      } else {
        rows.setNewer(last[into], first[from]);
        rows.setOlder(first[from], last[into]);
      }
      last[into] = last[from];
    }
    filled[to] |= filled[gone];
    filled[gone] = 0;
    if (start[span + 1] - youngFrom >= 0) {
      uses = MOST_USES; // the older of the two has young rows now
    }
    for (int i = 0; i < ranking.count(); i++) {
      if (ranking.cell(i) >> CLASS_BITS == gone) {
        ranking.setCell(i, cell(to, ranking.cell(i) & CLASS_MASK));
      }
    }
    freePlaces[freeCount++] = gone;
    int moved = spans - span - 2;
    System.arraycopy(start, span + 2, start, span + 1, moved);
    System.arraycopy(place, span + 2, place, span + 1, moved);
    System.arraycopy(addedBefore, span + 2, addedBefore, span + 1, moved);
    spans--;
  }

  private static int cell(int place, int reuseClass) {
    return (place << CLASS_BITS) | reuseClass;
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
    int at = place[spanOf(rows.stamp(row))];
    int cell = cell(at, c);
    listed++;
    if ((filled[at] & (1 << c)) == 0) {
      filled[at] |= 1 << c;
      uses = next ? MOST_USES : uses; // the cell may be worth less than those that are ranked
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
    int at = place[spanOf(rows.stamp(row))];
    int cell = cell(at, c);
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
      filled[at] &= ~(1 << c);
    }
  }

  /** A row of the size class became resident. */
  void arrived() {
    added++;
    resident++;
  }

  /** A row of the size class is resident no more. */
  void left() {
    resident--;
  }

  /** Row that should go next; -1 when nothing is listed. */
  int next(ReuseStatistics statistics, int now) {
    boolean stale = uses >= MOST_USES || (uses >= FEWEST_USES && now != rankedAt);
    while (!stale && ranked < ranking.count() && !isFilled(ranking.cell(ranked))) {
      ranked++;
    }
    if (stale || ranked == ranking.count()) {
      rank(statistics, now);
    }
    uses++;
    return near(0);
  }

  /**
   * First row of a cell that is worth about as much as that of the latest {@link #next}.
   *
   * @param rank cells between the two in the order of worth; 0 for that of the row itself
   * @return -1 when there is no such cell, or it has become empty
   */
  int near(int rank) {
    int at = ranked + rank;
    boolean known =
        at < ranking.count()
            && isFilled(ranking.cell(at))
            && ranking.worth(at) <= NEAR * ranking.worth(ranked);
    return known ? first[ranking.cell(at)] : NONE;
  }

  private boolean isFilled(int cell) {
    return (filled[cell >> CLASS_BITS] & (1 << (cell & CLASS_MASK))) != 0;
  }

  /** Ranks the cells; those with rows that came just now only when there are no others. */
  private void rank(ReuseStatistics statistics, int now) {
    ranking.clear();
    ranked = 0;
    rankedAt = now;
    uses = 0;
    youngFrom = now;
    long shielded = added - (resident >> SHIELD_SHIFT);
    for (int span = 0; span < spans; span++) {
      boolean newest = span + 1 == spans;
      long addedUntil = newest ? added : addedBefore[span + 1];
      boolean young = start[span] == now || addedUntil > shielded;
      if (young) {
        youngFrom = Math.min(youngFrom, start[span]);
        if (ranking.count() > 0) {
          return;
        }
      }
      int end = newest ? now : start[span + 1] - 1;
      int step = ReuseStatistics.step(now - start[span] - (end - start[span]) / 2);
      int at = place[span];
      for (int left = filled[at]; left != 0; left &= left - 1) {
        int c = Integer.numberOfTrailingZeros(left);
        ranking.offer(cell(at, c), statistics.worth(c, step));
      }
    }
  }

  /** Begin of the oldest span with rows; {@code now} when nothing is listed. */
  int oldest(int now) {
    for (int span = 0; span < spans; span++) {
      if (filled[place[span]] != 0) {
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
