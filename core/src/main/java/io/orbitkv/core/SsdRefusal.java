package io.orbitkv.core;

/** Why a block that was wanted on SSD was not written. */
public enum SsdRefusal {
  /** Too many blocks wait. */
  QUEUE_FULL(0),
  /** The day's bytes are written. */
  WRITE_BUDGET(1),
  /** Larger than a segment. */
  TOO_LARGE(2),
  /** It left DRAM before its turn came. */
  EVICTED(3),
  /** The tables are full. */
  TABLE_FULL(4);

  /** Number of reasons. */
  public static final int COUNT = values().length;

  private final int code;

  SsdRefusal(int code) {
    this.code = code;
  }

  /** Index in {@link SsdStats#refusedTotal}. */
  public int code() {
    return code;
  }
}
