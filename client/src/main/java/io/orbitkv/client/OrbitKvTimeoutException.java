package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.io.Serial;

/** A call reached its bound; that proves nothing about what the Manager did or will do. */
public final class OrbitKvTimeoutException extends OrbitKvException {
  @Serial private static final long serialVersionUID = 1;

  OrbitKvTimeoutException(String message) {
    super(Status.INTERNAL, message);
  }
}
