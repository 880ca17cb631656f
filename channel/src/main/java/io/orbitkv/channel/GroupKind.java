package io.orbitkv.channel;

import java.util.Locale;

/** What a group of layers keeps for each block of tokens. */
public enum GroupKind {
  /** Full attention: needs every block from the start. */
  PREFIX,
  /** Sliding window: needs the blocks of the last window. */
  WINDOW,
  /** Recurrent state: needs the one checkpoint at the boundary. */
  CHECKPOINT;

  /** Name on the wire and in the canonical descriptor. */
  public String wireName() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The kind of a wire name. */
  public static GroupKind of(String wireName) {
    for (GroupKind kind : values()) {
      if (kind.wireName().equals(wireName)) {
        return kind;
      }
    }
    throw new ProtocolException(
        Status.INVALID, "group kind=\"" + wireName + "\", allowed=prefix, window, checkpoint");
  }
}
