package io.orbitkv.system;

import static org.assertj.core.api.Assumptions.assumeThat;

import io.orbitkv.linux.Affinity;

/** What tests need of the machine. */
final class Processors {
  private Processors() {}

  /** Skips the test where no helper ever comes to a point of its own. */
  static void assumeEnoughFor(String point) {
    if (point.endsWith(".helping")) {
      assumeThat(Affinity.allowedCpus()).as("processors").hasSizeGreaterThan(1);
    }
  }
}
