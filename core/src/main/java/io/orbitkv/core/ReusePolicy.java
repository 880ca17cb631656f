package io.orbitkv.core;

import java.util.Arrays;

/**
 * Evicts the block whose place is worth least: the one that is least likely to be used again for
 * the time it would stay. How likely that is, is learned for blocks of different pasts and ages,
 * see {@link ReuseState} and {@link ReuseStatistics}. Only rows that no other row continues are
 * listed in {@link AgeCells} and may go, so the tail of a chain goes before its head, and using a
 * whole chain moves one row.
 */
final class ReusePolicy implements EvictionPolicy {
  /** Bytes of a row. */
  static final int ROW_BYTES = ReuseRows.ROW_BYTES;

  /** Most pinned rows that one search for a victim passes. */
  private static final int MAX_SEARCH = 65_536;

  /** Rows among which one that the tier below holds is looked for, in all and of one cell. */
  private static final int CANDIDATES = 32;

  private static final int CANDIDATES_A_CELL = 8;

  private static final int TAG_MASK = 0xffff;

  private final BlockIndex index;
  private final ReuseRows rows;
  private final ReuseStatistics statistics = new ReuseStatistics();
  private final ReuseSamples samples;
  private final ReuseGhosts ghosts;
  private LowerTier lower; // null for none
  private AgeCells[] cells = new AgeCells[0];
  private int now;

  ReusePolicy(long maxRows, MetadataMemory memory, BlockIndex index) {
    this.index = index;
    this.rows = new ReuseRows(maxRows, memory);
    this.samples = new ReuseSamples(memory, statistics);
    this.ghosts = new ReuseGhosts(memory);
  }

  @Override
  public void tick() {
    now++;
    samples.resize(index.resident());
    for (AgeCells each : cells) {
      each.tick(now);
    }
  }

  private AgeCells cells(int sizeClass) {
    if (sizeClass >= cells.length) {
      int old = cells.length;
      cells = Arrays.copyOf(cells, sizeClass + 1);
      for (int i = old; i <= sizeClass; i++) {
        cells[i] = new AgeCells(rows, now);
      }
    }
    return cells[sizeClass];
  }

  @Override
  public void added(int row, int sizeClass, int parent, int left) {
    samples.step(now);
    statistics.step();
    AgeCells into = cells(sizeClass);
    into.arrived();
    long key = index.key(row);
    int state = past(key, parent, left);
    if (samples.isSampled(key)) {
      state |= ReuseState.SAMPLED;
      samples.used(key, state, now);
    }
    rows.fill(row, parent, parent < 0 ? 0 : tag(parent), state, now);
    if (parent >= 0) {
      continueFrom(parent, into);
    }
    into.add(row, false);
  }

  private int past(long key, int parent, int left) {
    long ghost = ghosts.recall(key);
    if (ghost != 0) {
      return ReuseState.used((int) ghost, now - (int) (ghost >>> 32));
    }
    int before = parent < 0 ? 0 : rows.state(parent);
    return ReuseState.fresh(left, ReuseState.uses(before) == 1 ? ReuseState.run(before) : 0);
  }

  private void continueFrom(int parent, AgeCells from) {
    if (!rows.isListed(parent)) {
      rows.setChildren(parent, rows.children(parent) + 1);
      return;
    }
    from.remove(parent);
    rows.setChildren(parent, 1);
    int state = rows.state(parent);
    if ((state & ReuseState.TAIL) != 0) {
      rows.setState(parent, state & ~ReuseState.TAIL);
      if ((state & ReuseState.SAMPLED) != 0) {
        samples.changed(index.key(parent), state & ~ReuseState.TAIL);
      }
    }
  }

  /** Tells a row from a later one with the same number. */
  private int tag(int row) {
    return ((int) index.allocation(row) + index.slab(row) * 0x9e37_79b9) & TAG_MASK;
  }

  @Override
  public void touched(int row, int sizeClass) {
    int state = rows.state(row);
    boolean listed = rows.isListed(row);
    if (listed) {
      cells[sizeClass].remove(row);
    }
    int stamp = rows.stamp(row);
    state = ReuseState.used(state, now - stamp) & ~ReuseState.LISTED;
    rows.setState(row, state);
    rows.setStamp(row, now);
    if ((state & ReuseState.SAMPLED) != 0) {
      samples.used(index.key(row), state, now);
    }
    if (listed) {
      cells[sizeClass].add(row, false);
    }
  }

  @Override
  public void shielded(int row, int sizeClass) {
    if (rows.isListed(row)) {
      cells[sizeClass].remove(row);
      rows.setStamp(row, now);
      cells[sizeClass].add(row, false);
    }
  }

  @Override
  public void removed(int row, int sizeClass) {
    cells[sizeClass].left();
    if (rows.isListed(row)) {
      cells[sizeClass].remove(row);
    }
    ghosts.remember(index.key(row), rows.state(row), rows.stamp(row));
    int parent = parent(row);
    if (parent >= 0 && !rows.isListed(parent)) {
      int children = rows.children(parent) - 1;
      rows.setChildren(parent, children);
      if (children == 0) {
        cells[sizeClass].add(parent, true);
      }
    }
  }

  /** Pinned rows that stand in the way are in use, so they count as just used. */
  @Override
  public int victim(int sizeClass) {
    if (sizeClass >= cells.length) {
      return -1;
    }
    AgeCells from = cells[sizeClass];
    for (int i = Math.min(from.listed(), MAX_SEARCH); i > 0; i--) {
      int row = from.next(statistics, now);
      if (index.pins(row) == 0) {
        return lower == null ? row : heldBelow(from, row);
      }
      shielded(row, sizeClass);
    }
    return -1;
  }

  /** The row, or one that is worth about as much and that the tier below holds as well. */
  private int heldBelow(AgeCells from, int row) {
    int looked = 0;
    for (int rank = 0; rank < CellRanking.PLACES && looked < CANDIDATES; rank++) {
      int candidate = from.near(rank);
      for (int i = 0; i < CANDIDATES_A_CELL && candidate >= 0; i++) {
        if (index.pins(candidate) == 0 && lower.holds(candidate)) {
          return candidate;
        }
        candidate = rows.newer(candidate);
        looked++;
      }
    }
    return row;
  }

  @Override
  public void prefer(LowerTier tier) {
    lower = tier;
  }

  @Override
  public int stamp(int row) {
    return rows.stamp(row);
  }

  @Override
  public int now() {
    return now;
  }

  @Override
  public int oldestStamp(int sizeClass) {
    return sizeClass < cells.length ? cells[sizeClass].oldest(now) : now;
  }

  @Override
  public int parent(int row) {
    int parent = rows.parent(row);
    boolean same =
        parent >= 0
            && index.state(parent) == BlockIndex.RESIDENT
            && tag(parent) == rows.parentTag(row);
    return same ? parent : -1;
  }

  @Override
  public long usedBytes() {
    return (long) index.highWater() * ROW_BYTES;
  }
}
