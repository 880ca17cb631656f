package io.orbitkv.channel;

/** Why a block is not restorable. The codes are part of {@link LookupReply}. */
public enum MissReason {
  /** It is there. */
  NONE,
  /** No publish of it is remembered. */
  NEVER_STORED,
  /** It gave way to other blocks. */
  EVICTED,
  /** A block with this hash is known in another namespace or group only. */
  OTHER_NAMESPACE,
  /** A publish of it was refused. */
  REFUSED,
  /** It was removed by a clear. */
  CLEARED,
  /** It is there, but a budget for leased bytes is used up. */
  BUDGET;

  private static final MissReason[] BY_CODE = values();

  /** Number of reasons. */
  public static final int COUNT = BY_CODE.length;

  /** The stable code of this reason. */
  public int code() {
    return ordinal();
  }

  /** The reason with this code; {@link #NEVER_STORED} when unknown. */
  public static MissReason of(int code) {
    return code >= 0 && code < COUNT ? BY_CODE[code] : NEVER_STORED;
  }
}
