package io.orbitkv.channel;

/** Versions and limits that both processes must agree on. */
public final class Protocol {
  /**
   * Version of the channel memfd, the grant memfd and every command; raised by a change of any
   * layout.
   */
  public static final int CHANNEL_VERSION = 1;

  /** Version of the lifecycle frames; raised by an incompatible change of lifecycle.proto. */
  public static final int LIFECYCLE_VERSION = 1;

  /** Largest span of variable-length data behind one command, in bytes. */
  public static final int MAX_SPAN_BYTES = 4 << 20;

  /** Most block hashes in one command. */
  public static final int MAX_HASHES = 65_536;

  /** Shortest and longest block hash, in bytes. */
  public static final int MIN_HASH_BYTES = 16;

  /** See {@link #MIN_HASH_BYTES}. */
  public static final int MAX_HASH_BYTES = 32;

  /** Bytes of a namespace digest. */
  public static final int NAMESPACE_BYTES = 32;

  /** Most namespaces (rank shards) in one lookup. */
  public static final int MAX_NAMESPACES = 64;

  /** Group ids run from 0 to this value less one. */
  public static final int MAX_GROUPS = 64;

  /** Most sessions, live or retained. */
  public static final int MAX_SESSIONS = 64;

  /** Largest lifecycle frame body, in bytes. */
  public static final int MAX_FRAME_BYTES = 64 << 20;

  private Protocol() {}
}
