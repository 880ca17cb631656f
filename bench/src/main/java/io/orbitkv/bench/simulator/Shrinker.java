package io.orbitkv.bench.simulator;

/**
 * Leaves steps out of a schedule that breaks a rule, as long as the rest breaks the same rule: long
 * pieces first, then shorter ones, down to single steps. After Andreas Zeller and Ralf Hildebrandt,
 * "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering
 * 28(2), 2002.
 */
final class Shrinker {
  private static final int MAX_RUNS = 4_000;

  private final int engines;
  private final Variant variant;
  private final Rule rule;
  private final boolean withEnd;
  private int runs;

  /**
   * A shrinker.
   *
   * @param failing how the schedule to be shrunk ended
   */
  Shrinker(int engines, Variant variant, Outcome failing) {
    this.engines = engines;
    this.variant = variant;
    this.rule = failing.violation().rule();
    this.withEnd = failing.atEnd();
  }

  /**
   * Shrinks until no single step can be left out, or the bound of runs is reached.
   *
   * @param failing breaks the rule
   */
  Schedule shrink(Schedule failing) {
    Schedule best = failing;
    for (int piece = failing.size() / 2; piece > 1; piece /= 2) {
      best = sweep(best, piece);
    }
    int before;
    do {
      before = best.size();
      best = sweep(best, 1);
    } while (best.size() < before && runs < MAX_RUNS);
    return best;
  }

  /** Tries once, from the end on, to leave each piece out. */
  private Schedule sweep(Schedule schedule, int piece) {
    Schedule best = schedule;
    int to = best.size();
    while (to > 0 && runs < MAX_RUNS) {
      int from = Math.max(0, to - piece);
      Schedule rest = best.without(from, to);
      runs++;
      Outcome outcome = rest.run(engines, variant, withEnd, null);
      if (outcome.violation() != null && outcome.violation().rule() == rule) {
        best = rest.first(outcome.stepsDone());
      }
      to = Math.min(from, best.size());
    }
    return best;
  }
}
