package io.orbitkv.channel;

/** How a command, a frame or an operation ended. The codes are part of the protocol. */
public enum Status {
  /** Done. */
  OK(0),
  /** The request breaks a rule of the protocol or names an impossible value. */
  INVALID(1),
  /** The Manager epoch of the command is not this Manager's. */
  EPOCH_MISMATCH(2),
  /** The peer speaks another protocol version. */
  VERSION_MISMATCH(3),
  /** The lease was used, released, cancelled or became too old. */
  LEASE_ENDED(4),
  /** No such registration. */
  UNKNOWN_REGISTRATION(5),
  /** The registration was replaced or withdrawn after the step was queued. */
  STALE_REGISTRATION(6),
  /** The lease belongs to a namespace or group that the session has not registered. */
  NAMESPACE_MISMATCH(7),
  /** No block could be allocated: the rest of the pool is in use. */
  POOL_FULL(8),
  /** A documented limit is exceeded; the message names it. */
  LIMIT(9),
  /** The session or registration may restore only. */
  RESTORE_ONLY(10),
  /** The Manager is stopping. */
  STOPPING(11),
  /** The Manager is still preparing its pool. */
  NOT_READY(12),
  /** The peer's user is not allowed. */
  FORBIDDEN(13),
  /** Another living process holds this instance and rank. */
  INSTANCE_HELD(14),
  /** The operation was cancelled. */
  CANCELLED(15),
  /** A newer revision replaced the query. */
  SUPERSEDED(16),
  /** A copy failed, or a checksum did not match. */
  COPY_FAILED(17),
  /** The session is over. */
  SESSION_ENDED(18),
  /** The operation has more blocks than one command can name. */
  PLAN_TOO_LARGE(19),
  /** A fault inside the Manager; its log has the cause. */
  INTERNAL(20);

  private static final Status[] BY_CODE = values();

  private final int code;

  Status(int code) {
    this.code = code;
  }

  /** The stable code of this status. */
  public int code() {
    return code;
  }

  /** The status with this code; {@link #INTERNAL} when the code is unknown. */
  public static Status of(int code) {
    return code >= 0 && code < BY_CODE.length ? BY_CODE[code] : INTERNAL;
  }
}
