package io.orbitkv.bench.simulator;

import io.orbitkv.bench.simulator.SimulationResult.Failure;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;

/**
 * Runs of some seeds, each in a world of its own, on as many threads as there are processors.
 *
 * @param firstSeed first seed
 * @param lastSeed last seed
 * @param steps steps of each run
 * @param engines engines of each run
 */
public record Simulation(long firstSeed, long lastSeed, int steps, int engines) {
  /** Steps of a run where nobody says otherwise. */
  public static final int DEFAULT_STEPS = 20_000;

  /** Engines where nobody says otherwise. */
  public static final int DEFAULT_ENGINES = 4;

  /** Most engines. */
  public static final int MAX_ENGINES = 32;

  /** Most steps of a run. */
  public static final int MAX_STEPS = 10_000_000;

  /**
   * Checks the numbers.
   *
   * @throws IllegalArgumentException naming the value and the rule
   */
  public Simulation {
    require(
        firstSeed >= 0 && firstSeed <= lastSeed,
        "seeds=" + firstSeed + ".." + lastSeed,
        "A..B with 0 <= A <= B");
    require(steps >= 1 && steps <= MAX_STEPS, "steps=" + steps, "1.." + MAX_STEPS);
    require(engines >= 1 && engines <= MAX_ENGINES, "engines=" + engines, "1.." + MAX_ENGINES);
  }

  private static void require(boolean rule, String value, String allowed) {
    if (!rule) {
      throw new IllegalArgumentException(value + ", allowed: " + allowed);
    }
  }

  /** Runs the seeds, and shrinks the schedule of the lowest one that breaks a rule. */
  public SimulationResult run() {
    return run(Variant.real());
  }

  SimulationResult run(Variant variant) {
    Counts counts = new Counts();
    AtomicLong failed = new AtomicLong(Long.MAX_VALUE);
    LongStream.rangeClosed(firstSeed, lastSeed)
        .parallel()
        .filter(seed -> seed < failed.get()) // later ones do not matter any more
        .forEach(seed -> {
          Outcome outcome = Schedule.ofSeed(seed, steps).run(engines, variant);
          if (outcome.violation() != null) {
            failed.accumulateAndGet(seed, Math::min);
          }
          synchronized (counts) {
            counts.add(outcome.counts());
          }
        });
    Failure failure = failed.get() == Long.MAX_VALUE ? null : shrink(failed.get(), variant);
    return new SimulationResult(this, counts, failure);
  }

  private Failure shrink(long seed, Variant variant) {
    Schedule whole = Schedule.ofSeed(seed, steps);
    Outcome outcome = whole.run(engines, variant);
    if (outcome.violation() == null) {
      throw new IllegalStateException(
          "seed=" + seed + " breaks a rule in one run, not in the next");
    }
    Schedule failing = whole.first(outcome.stepsDone());
    Schedule shrunk = new Shrinker(engines, variant, outcome).shrink(failing);
    List<String> trace = new ArrayList<>();
    Outcome last = shrunk.run(engines, variant, true, trace);
    return new Failure(
        seed,
        outcome.violation().rule(),
        outcome.violation().getMessage(),
        last.violation().getMessage(),
        failing.size(),
        shrunk.size(),
        trace);
  }
}
