package io.orbitkv.core;

/**
 * Orders the resident rows of each size class by how soon they should go. Rows are numbers of
 * {@link BlockIndex}. Time is counted in publishes.
 */
interface EvictionPolicy {
  /** A publish begins: time goes on. */
  void tick();

  /**
   * A row became resident. {@code parent} is the row before it in its chain, -1 for none; the new
   * row goes before its parent. {@code left} is the number of blocks of its publish from this one
   * on in its chain, 0 when that is unknown.
   */
  void added(int row, int sizeClass, int parent, int left);

  /** A resident row was used. */
  void touched(int row, int sizeClass);

  /** A resident row must not give way to what is stored next, without being used. */
  void shielded(int row, int sizeClass);

  /** A row is no longer resident. */
  void removed(int row, int sizeClass);

  /**
   * Row of the class that should go first and is not pinned; -1 when none is found within a bounded
   * search.
   */
  int victim(int sizeClass);

  /** From now on, of rows that are worth about as much, one that the tier holds goes first. */
  void prefer(LowerTier tier);

  /** Time of the row's latest use. */
  int stamp(int row);

  /** The time. */
  int now();

  /** Time of the latest use of a row of the class that was not used for long, about. */
  int oldestStamp(int sizeClass);

  /** Row before this one in its chain as far as it is still resident; -1 for none. */
  int parent(int row);

  /** Bytes of tables in use. */
  long usedBytes();
}
