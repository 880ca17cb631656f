package io.orbitkv.bench.simulator;

/**
 * How one run ended.
 *
 * @param hash hash of all that happened
 * @param counts what happened
 * @param violation the rule that was found broken; null when all held
 * @param atEnd whether all steps had been made when it was found
 */
record Outcome(long hash, Counts counts, Violation violation, boolean atEnd) {
  /** Steps made, the one that broke the rule included. */
  int stepsDone() {
    return (int) counts.steps;
  }
}
