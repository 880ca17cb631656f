package io.orbitkv.channel;

/** Why a block is not restorable. The codes are part of {@link LookupReply}. */
public enum MissReason {
  /** It is there. */
  NONE(0),
  /** No publish of it is remembered. */
  NEVER_STORED(1),
  /** It gave way to other blocks. */
  EVICTED(2),
  /** A block with this hash is known in another namespace or group only. */
  OTHER_NAMESPACE(3),
  /** A publish of it was refused. */
  REFUSED(4),
  /** It was removed by a clear. */
  CLEARED(5),
  /** It is there, but a budget for leased bytes is used up. */
  BUDGET(6),
  /** A slower tier has it but does not deliver it now, or its copy there is damaged. */
  TIER(7);

  private static final MissReason[] BY_CODE = values();

  /** Number of reasons. */
  public static final int COUNT = BY_CODE.length;

  private final int code;

  MissReason(int code) {
    this.code = code;
  }

  /** The stable code of this reason. */
  public int code() {
    return code;
  }

  /** The reason with this code; {@link #NEVER_STORED} when unknown. */
  public static MissReason of(int code) {
    return code >= 0 && code < COUNT ? BY_CODE[code] : NEVER_STORED;
  }
}
