package io.orbitkv.core;

import io.orbitkv.channel.Status;
import java.io.Serial;

/** The core refuses a request of the control path; the message names the value and the rule. */
public final class CoreException extends RuntimeException {
  @Serial private static final long serialVersionUID = 1;

  private final Status status;

  /** Creates one. */
  public CoreException(Status status, String message) {
    super(message);
    this.status = status;
  }

  /** What the client is told. */
  public Status status() {
    return status;
  }
}
