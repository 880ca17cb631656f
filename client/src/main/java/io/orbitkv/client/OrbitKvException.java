package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.io.Serial;

/** A call failed; the status says how, the message says what was tried. */
public class OrbitKvException extends RuntimeException {
  @Serial private static final long serialVersionUID = 1;

  private final Status status;

  /** Creates one. */
  public OrbitKvException(Status status, String message) {
    super(message);
    this.status = status;
  }

  /** Creates one with a cause. */
  public OrbitKvException(Status status, String message, Throwable cause) {
    super(message, cause);
    this.status = status;
  }

  /** How the call failed. */
  public Status status() {
    return status;
  }
}
