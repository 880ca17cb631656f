package io.orbitkv.core;

/** Numbers of requests to {@link SsdPort}: a kind, and which of that kind. */
final class SsdRequest {
  /** Read of a load. */
  static final int READ = 0;

  /** Write of a block. */
  static final int WRITE = 1;

  /** Segment that is being opened. */
  static final int OPEN = 2;

  /** Table of a segment. */
  static final int TABLE = 3;

  /** Note of a clear. */
  static final int CLEAR = 4;

  private static final int KIND_SHIFT = 24;
  private static final int INDEX_MASK = (1 << KIND_SHIFT) - 1;

  private SsdRequest() {}

  static int of(int kind, int index) {
    return kind << KIND_SHIFT | index;
  }

  static int kind(int request) {
    return request >>> KIND_SHIFT;
  }

  static int index(int request) {
    return request & INDEX_MASK;
  }
}
