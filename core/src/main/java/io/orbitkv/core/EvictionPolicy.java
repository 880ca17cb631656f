package io.orbitkv.core;

/**
 * Orders the resident rows of each size class by how soon they should go. Rows are numbers of
 * {@link BlockIndex}.
 */
interface EvictionPolicy {
  /**
   * A row became resident. {@code parent} is the row before it in its chain, -1 for none; the new
   * row goes before its parent.
   */
  void added(int row, int sizeClass, int parent, int stamp);

  /** A resident row was used. */
  void touched(int row, int sizeClass, int stamp);

  /** A row is no longer resident. */
  void removed(int row, int sizeClass);

  /**
   * Row of the class that should go first and is not pinned; -1 when none is found within a bounded
   * search.
   */
  int victim(int sizeClass);

  /** Stamp of the row's latest use. */
  int stamp(int row);

  /** Row before this one in its chain as far as it is still resident; -1 for none. */
  int parent(int row);

  /** Bytes of tables in use. */
  long usedBytes();
}
