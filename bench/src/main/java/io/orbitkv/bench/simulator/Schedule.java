package io.orbitkv.bench.simulator;

import java.util.Arrays;
import java.util.List;

/**
 * Steps of a run, one number each. Any of them can be left out: what the others do does not hang on
 * their place.
 *
 * @param steps the numbers
 */
@SuppressWarnings("ArrayRecordComponent") // never changed, never compared
record Schedule(long[] steps) {
  /** All steps of a seed. */
  static Schedule ofSeed(long seed, int count) {
    long[] steps = new long[count];
    for (int i = 0; i < count; i++) {
      steps[i] = Mix.at(seed, i);
    }
    return new Schedule(steps);
  }

  int size() {
    return steps.length;
  }

  /** The first steps. */
  Schedule first(int count) {
    return new Schedule(Arrays.copyOf(steps, count));
  }

  /** All steps but those from one place to before another. */
  Schedule without(int from, int to) {
    long[] rest = new long[steps.length - (to - from)];
    System.arraycopy(steps, 0, rest, 0, from);
    System.arraycopy(steps, to, rest, from, steps.length - to);
    return new Schedule(rest);
  }

  /** Runs it in a new world. */
  Outcome run(int engines, Variant variant) {
    return run(engines, variant, true, null);
  }

  /**
   * Runs it in a new world.
   *
   * @param withEnd whether all is brought to an end after the steps
   * @param trace takes a line for all that happens; null for none
   */
  Outcome run(int engines, Variant variant, boolean withEnd, List<String> trace) {
    try (World world = new World(engines, variant)) {
      world.record(trace);
      Violation violation = null;
      boolean atEnd = false;
      try {
        for (long step : steps) {
          world.step(step);
        }
        atEnd = true;
        if (withEnd) {
          world.end();
        }
      } catch (Violation e) {
        violation = e;
      } catch (RuntimeException
          | AssertionError e) { // whatever it is, the code under test threw it
        violation = new Violation(Rule.FAULTS, e);
      }
      world.counts.runs = 1;
      return new Outcome(world.hash(), world.counts, violation, atEnd);
    }
  }
}
