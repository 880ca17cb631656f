package io.orbitkv.bench;

import java.io.IOException;

/** Takes one figure; called once a round. */
@FunctionalInterface
interface Measurement {
  double take() throws IOException;
}
