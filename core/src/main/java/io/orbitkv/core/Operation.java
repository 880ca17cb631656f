package io.orbitkv.core;

/**
 * The core's own record of one restore or publish. Objects belong to one slot of one session and
 * are used again.
 */
final class Operation {
  /** How far the core has come. */
  enum Phase {
    /** Nothing is owned. */
    SETTLED,
    /** Owners are taken, no plan is written: the bank is full. */
    PREPARED,
    /** The plan of the current part is written and was granted. */
    GRANTED,
    /** The current part has drained, the plan of the next is not written: the bank is full. */
    BETWEEN,
    /** The engine broke the protocol after the grant: counts as Active until its end is proven. */
    DISTRUSTED,
    /** A fault of the core itself: its owners are in doubt and stay for good. */
    QUARANTINED
  }

  /** Code of a block that was already held; see {@link #rows}. */
  static final int HELD_BASE = Integer.MIN_VALUE;

  /** Code of a block for which there was no room; see {@link #rows}. */
  static final int REFUSED = -1;

  /** No space of the bank is held. */
  static final int NO_PLAN = -1;

  final Session session;
  final int slot;
  long generation;
  boolean publish;

  /** True while the registration counts it. */
  boolean begun;

  Phase phase = Phase.SETTLED;
  Registration registration;
  long requestId;

  /**
   * Blocks in the order of the request: a row that is owned, HELD_BASE + a row that was there and
   * is pinned by a publish to its end, or REFUSED.
   */
  int[] rows;

  /** Page of each block. */
  int[] pages;

  /** Number of blocks. */
  int count;

  /** Number of owned rows: the entries of all parts of the plan. */
  int entries;

  int held;
  int refused;
  int parts;

  /** Current part, and the blocks of it: from {@code partFirst} to before {@code partEnd}. */
  int part;

  int partFirst;
  int partEnd;

  /** Owned rows of the current part, and of all parts up to it. */
  int partEntries;

  int entriesSoFar;

  /** When the current part was granted. */
  long grantedNs;

  /** False once a part has drained with less than all of its entries. */
  boolean wholeSoFar;

  /** Plan of the current part in the bank, or {@link #NO_PLAN}. */
  int planOffset = NO_PLAN;

  /** First block, group and parent of each section of a publish: three ints a section. */
  int[] sections;

  int sectionCount;

  /** Bytes charged to the session. */
  long metadataBytes;

  Operation(Session session, int slot) {
    this.session = session;
    this.slot = slot;
  }

  /** Row that a section of a publish continues, pinned to its end; -1 for none. */
  int parent(int section) {
    return sections[3 * section + 2];
  }

  boolean isSettled() {
    return phase == Phase.SETTLED;
  }

  static boolean isOwned(int code) {
    return code >= 0;
  }

  static boolean isHeld(int code) {
    return code < REFUSED;
  }

  static int held(int row) {
    return HELD_BASE + row;
  }

  static int heldRow(int code) {
    return code - HELD_BASE;
  }
}
