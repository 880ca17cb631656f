package io.orbitkv.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.orbitkv.channel.Status;
import io.orbitkv.client.LookupResult;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SimulationTest {
  private static final int STEPS = 5_000;
  private static final long NANOS = 1_000_000_000;

  private static void requireHolds(long firstSeed, long lastSeed, int steps, int engines) {
    SimulationResult result = new Simulation(firstSeed, lastSeed, steps, engines).run();
    assertThat(result.failure()).as(() -> result.toTable(NANOS)).isNull();
  }

  @ParameterizedTest
  @CsvSource({"1, 12, 1", "1, 12, 2", "1, 24, 4", "1, 12, 9"})
  void shouldHoldInFixedSeeds(long firstSeed, long lastSeed, int engines) {
    requireHolds(firstSeed, lastSeed, STEPS, engines);
  }

  @Test
  void shouldHoldInAFreshSeed() {
    long seed = System.currentTimeMillis();
    System.out.println("fresh seed of the simulator: " + seed);
    requireHolds(seed, seed + 3, STEPS, 4);
  }

  @Tag("long")
  @Test
  void shouldHoldInManySeeds() {
    long seed = System.currentTimeMillis();
    System.out.println("fresh seeds of the simulator: " + seed + " and on");
    requireHolds(seed, seed + 500, 2 * STEPS, 4);
    requireHolds(seed, seed + 100, STEPS, 32);
    requireHolds(seed, seed + 20, 40 * STEPS, 4);
  }

  @Test
  void shouldDoTheSameForTheSameSeed() {
    Schedule schedule = Schedule.ofSeed(7, STEPS);
    Outcome first = schedule.run(4, Variant.real());
    Outcome traced = schedule.run(4, Variant.real(), true, new ArrayList<>());
    Outcome other = Schedule.ofSeed(8, STEPS).run(4, Variant.real());

    assertThat(traced.hash()).isEqualTo(first.hash());
    assertThat(other.hash()).isNotEqualTo(first.hash());
  }

  @Test
  void shouldInjectEveryFaultAndMeetEveryOutcomeThatMatters() {
    Counts counts = new Simulation(1, 20, STEPS, 4).run().counts();

    for (Kind kind : Kind.values()) {
      assertThat(counts.faults.of(kind) > 0).as("%s", kind).isEqualTo(kind.isFault());
    }
    assertThat(counts.verifiedBlocks).isGreaterThan(1000);
    assertThat(counts.evictions).isGreaterThan(1000);
    assertThat(counts.ssdLoads).isPositive();
    assertThat(counts.poolFull).isPositive();
    assertThat(counts.retained).isPositive();
    for (Status status :
        List.of(
            Status.OK,
            Status.CANCELLED,
            Status.SESSION_ENDED,
            Status.STALE_REGISTRATION,
            Status.STOPPING)) {
      assertThat(counts.publishes.of(status)).as("publishes %s", status).isPositive();
      assertThat(counts.restores.of(status)).as("restores %s", status).isPositive();
    }
    for (LookupResult.Outcome outcome : LookupResult.Outcome.values()) {
      assertThat(counts.lookups.of(outcome)).as("lookups %s", outcome).isPositive();
    }
  }

  @Test
  void shouldTellOfWhatItDid() {
    SimulationResult result = new Simulation(1, 2, 500, 2).run();

    assertThat(result.steps()).isEqualTo(1000);
    assertThat(result.toTable(NANOS))
        .contains("1..2, 2 engines, 500 steps each", "1,000 in 1.0 s, 1,000 a second")
        .contains("violations  0");
    assertThat(result.toJson(NANOS))
        .contains("\"steps_a_second\" : 1000", "\"violations\" : 0", "\"cancel\"");
  }

  @ParameterizedTest
  @CsvSource({"5, 3, 1, 1", "-1, 3, 1, 1", "1, 1, 0, 1", "1, 1, 1, 0", "1, 1, 1, 33"})
  void shouldRefuseNumbersThatHaveNoMeaning(long first, long last, int steps, int engines) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Simulation(first, last, steps, engines))
        .withMessageContaining("allowed:");
  }

  @Test
  void shouldLeaveStepsOutWithoutAChangeOfTheOthers() {
    Schedule schedule = Schedule.ofSeed(3, 10);

    assertThat(schedule.without(2, 5).steps())
        .containsExactly(pick(schedule, List.of(0, 1, 5, 6, 7, 8, 9)));
  }

  private static long[] pick(Schedule schedule, List<Integer> places) {
    return places.stream().mapToLong(place -> schedule.steps()[place]).toArray();
  }
}
