package io.orbitkv.manager;

import java.io.Serial;

/** The Manager can not start or run; the message says what was tried and why it can not be. */
public final class ManagerException extends RuntimeException {
  @Serial private static final long serialVersionUID = 1;

  /** Creates one whose message says all. */
  public ManagerException(String message) {
    super(message);
  }

  /** Creates one with what led to it. */
  public ManagerException(String message, Throwable cause) {
    super(message, cause);
  }
}
