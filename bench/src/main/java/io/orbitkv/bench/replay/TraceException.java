package io.orbitkv.bench.replay;

import java.io.Serial;

/** A trace cannot be played; the message names file, line and rule. */
public final class TraceException extends RuntimeException {
  @Serial private static final long serialVersionUID = 1;

  /** Creates one. */
  public TraceException(String message) {
    super(message);
  }

  /** Creates one with a cause. */
  public TraceException(String message, Throwable cause) {
    super(message, cause);
  }
}
