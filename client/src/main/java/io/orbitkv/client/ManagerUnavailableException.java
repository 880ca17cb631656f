package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.io.Serial;

/** No Manager listens on the socket. */
public final class ManagerUnavailableException extends OrbitKvException {
  @Serial private static final long serialVersionUID = 1;

  ManagerUnavailableException(String message, Throwable cause) {
    super(Status.NOT_READY, message, cause);
  }
}
