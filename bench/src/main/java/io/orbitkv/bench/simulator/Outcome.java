package io.orbitkv.bench.simulator;

/**
 * How one run ended.
 *
 * @param hash hash of all that happened
 * @param counts what happened
 * @param violation the rule that was found broken; null when all held
 * @param stepsDone steps made, the one that broke the rule included
 */
record Outcome(long hash, Counts counts, Violation violation, int stepsDone) {}
