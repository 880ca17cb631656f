package io.orbitkv.channel;

/** Operation codes of commands; a reply carries the code of its request. */
public final class Opcode {
  /** Empty round trip; scalars come back unchanged. */
  public static final short PING = 1;

  /** Data: {@link LookupRequest}; answer: {@link LookupReply}. */
  public static final short LOOKUP = 2;

  /** Data: {@link RestoreRequest}; scalar 0 is the operation id. The record is the answer. */
  public static final short RESTORE = 3;

  /**
   * Data: {@link PublishRequest}; scalar 0 is the operation id. Answer: {@link PublishReply}, a
   * hint.
   */
  public static final short PUBLISH = 4;

  /** Scalar 0 is the lease id. */
  public static final short RELEASE = 5;

  /** Scalar 0 is the query id, scalar 1 the revision up to which answers become void. */
  public static final short CANCEL_QUERY = 6;

  private Opcode() {}
}
