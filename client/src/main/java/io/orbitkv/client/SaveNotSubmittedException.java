package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.io.Serial;

/**
 * Proof that a publish was never submitted: no Manager has seen it or will, and its pages were not
 * touched. The same blocks may be published again at once, which will only help where the reason,
 * as a full ring, is a passing one.
 */
public final class SaveNotSubmittedException extends OrbitKvException {
  @Serial private static final long serialVersionUID = 1;

  SaveNotSubmittedException(Status status, String reason) {
    super(status, "publish: nothing was submitted: " + reason);
  }
}
