package io.orbitkv.bench.simulator;

/**
 * Leaves steps out of a schedule that breaks a rule, as long as the rest breaks the same rule.
 * Andreas Zeller and Ralf Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
 * Transactions on Software Engineering 28(2), 2002.
 */
final class Shrinker {
  private static final int MAX_RUNS = 3_000;

  private final int engines;
  private final Variant variant;
  private final Rule rule;
  private int runs;

  Shrinker(int engines, Variant variant, Rule rule) {
    this.engines = engines;
    this.variant = variant;
    this.rule = rule;
  }

  /**
   * Shrinks as far as leaving out single steps goes, or the bound of runs allows.
   *
   * @param failing breaks the rule
   */
  Schedule shrink(Schedule failing) {
    Schedule best = failing;
    int pieces = 2;
    while (best.size() > 1 && runs < MAX_RUNS) {
      Schedule smaller = withoutOneOf(best, pieces);
      if (smaller != null) {
        best = smaller;
        pieces = Math.max(2, pieces - 1);
      } else if (pieces >= best.size()) {
        break;
      } else {
        pieces = Math.min(best.size(), 2 * pieces);
      }
    }
    return best;
  }

  /** The schedule without the first piece that it does not need; null when it needs each. */
  private Schedule withoutOneOf(Schedule schedule, int pieces) {
    for (int piece = pieces - 1; piece >= 0 && runs < MAX_RUNS; piece--) {
      int from = (int) ((long) schedule.size() * piece / pieces);
      int to = (int) ((long) schedule.size() * (piece + 1) / pieces);
      Schedule rest = schedule.without(from, to);
      runs++;
      Outcome outcome = rest.run(engines, variant);
      if (outcome.violation() != null && outcome.violation().rule() == rule) {
        return rest.first(outcome.stepsDone());
      }
    }
    return null;
  }
}
