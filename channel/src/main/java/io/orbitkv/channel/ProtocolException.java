package io.orbitkv.channel;

import java.io.Serial;

/** Bytes of the other process break a rule; the message names the value and the rule. */
public final class ProtocolException extends RuntimeException {
  @Serial private static final long serialVersionUID = 1;

  private final Status status;

  /** Creates one with the status that the other process is told. */
  public ProtocolException(Status status, String message) {
    super(message);
    this.status = status;
  }

  /** What the other process is told. */
  public Status status() {
    return status;
  }
}
