package io.orbitkv.channel;

/** States of a grant record and the moves between them, each of which one side may make. */
public enum GrantState {
  /** Never used in this session. */
  FREE(0),
  /** The engine has chosen the slot and the next generation. */
  RESERVED(1),
  /** The Manager has consumed the leases, allocated the ranges or noted its refusal. */
  PREPARING(2),
  /** The engine gave up before anything was granted. */
  CANCEL_REQUESTED(3),
  /** The plan of the current part is written. */
  GRANTED(4),
  /** The engine reads the plan and touches memory. */
  ACTIVE(5),
  /** Every access of this part has ended; more parts follow. */
  PART_DRAINED(6),
  /** Every access has ended. */
  DRAINED(7),
  /** The Manager took the grant back before the engine began. */
  REVOKED(8),
  /** The Manager has settled the owners; the outcome is in the record. */
  REAPED(9),
  /** The engine has read the outcome; the slot may be used again. */
  ACKNOWLEDGED(10);

  private static final GrantState[] BY_CODE = values();

  private final int code;

  GrantState(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }

  /** The state with this code, or null. */
  static GrantState of(int code) {
    return code < BY_CODE.length ? BY_CODE[code] : null;
  }

  /** True when the engine may make this move. */
  public boolean engineMayMoveTo(GrantState next) {
    return switch (this) {
      case FREE -> next == RESERVED;
      case ACKNOWLEDGED -> next == RESERVED;
      case RESERVED -> next == ACKNOWLEDGED;
      case PREPARING -> next == CANCEL_REQUESTED;
      case GRANTED -> next == ACTIVE;
      case ACTIVE -> next == PART_DRAINED || next == DRAINED;
      case PART_DRAINED -> next == DRAINED;
      case REAPED -> next == ACKNOWLEDGED;
      case CANCEL_REQUESTED, DRAINED, REVOKED -> false;
    };
  }

  /** True when the Manager may make this move. */
  public boolean managerMayMoveTo(GrantState next) {
    return switch (this) {
      case RESERVED -> next == PREPARING;
      case PREPARING -> next == GRANTED || next == REAPED;
      case CANCEL_REQUESTED -> next == REAPED;
      case GRANTED -> next == REVOKED;
      case ACTIVE -> next == REAPED;
      case PART_DRAINED -> next == GRANTED || next == REAPED;
      case DRAINED -> next == REAPED;
      case REVOKED -> next == REAPED;
      case FREE, REAPED, ACKNOWLEDGED -> false;
    };
  }

  /** True when the caller may use its pages again whatever happens next. */
  public boolean pagesFree() {
    return switch (this) {
      case DRAINED, ACKNOWLEDGED, CANCEL_REQUESTED, REVOKED, REAPED, FREE -> true;
      case RESERVED, PREPARING, GRANTED, ACTIVE, PART_DRAINED -> false;
    };
  }
}
