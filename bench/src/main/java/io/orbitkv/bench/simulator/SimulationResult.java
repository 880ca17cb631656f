package io.orbitkv.bench.simulator;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** What came of a simulation. */
public final class SimulationResult {
  private static final long WANTED_STEPS_A_SECOND = 1_000_000;
  private static final double NANOS = 1e9;

  /**
   * The lowest seed that breaks a rule.
   *
   * @param seed the seed
   * @param rule the rule
   * @param detail what was found
   * @param shrunkDetail what was found in the shrunk schedule
   * @param steps steps up to the one that broke the rule
   * @param shrunkSteps steps that are left of them
   * @param schedule what happens in the shrunk schedule, line by line
   */
  public record Failure(
      long seed,
      Rule rule,
      String detail,
      String shrunkDetail,
      int steps,
      int shrunkSteps,
      List<String> schedule) {
    /** Copies the list. */
    public Failure {
      schedule = List.copyOf(schedule);
    }
  }

  private final Simulation simulation;
  private final Counts counts;
  private final Failure failure;

  SimulationResult(Simulation simulation, Counts counts, Failure failure) {
    this.simulation = simulation;
    this.counts = counts;
    this.failure = failure;
  }

  /** The lowest seed that breaks a rule; null when all held. */
  public Failure failure() {
    return failure;
  }

  /** Steps of all runs. */
  public long steps() {
    return counts.steps;
  }

  Counts counts() {
    return counts;
  }

  private Map<String, Long> lookups() {
    Map<String, Long> map = counts.lookups.byName();
    map.put("refused", counts.lookupsRefused);
    map.put("abandoned", counts.lookupsAbandoned);
    return map;
  }

  private Map<String, Long> faults() {
    Map<String, Long> map = counts.faults.byName();
    map.put("full pool", counts.poolFull);
    return map;
  }

  /**
   * A table for people, and the shrunk schedule of what failed.
   *
   * @param elapsedNs how long the runs took
   */
  public String toTable(long elapsedNs) {
    StringBuilder table = new StringBuilder();
    long perSecond = stepsPerSecond(elapsedNs);
    line(
        table,
        "seeds",
        "%d..%d, %d engines, %,d steps each"
            .formatted(
                simulation.firstSeed(),
                simulation.lastSeed(),
                simulation.engines(),
                simulation.steps()));
    line(
        table,
        "steps",
        "%,d in %.1f s, %,d a second".formatted(counts.steps, elapsedNs / NANOS, perSecond));
    if (perSecond < WANTED_STEPS_A_SECOND && counts.steps > 0) {
      line(table, "limit", limit());
    }
    line(table, "publishes", join(counts.publishes.byName()));
    line(table, "restores", join(counts.restores.byName()));
    line(table, "lookups", join(lookups()));
    line(table, "faults", join(faults()));
    line(
        table,
        "checked",
        "blocks restored and compared %,d, evicted %,d, read from SSD %,d; operations retained %,d"
            .formatted(counts.verifiedBlocks, counts.evictions, counts.ssdLoads, counts.retained));
    line(table, "violations", failure == null ? "0" : "1");
    if (failure != null) {
      appendFailure(table);
    }
    return table.toString();
  }

  private long stepsPerSecond(long elapsedNs) {
    return elapsedNs == 0 ? 0 : (long) (counts.steps / (elapsedNs / NANOS));
  }

  /** A step costs what the real code does in it. */
  private String limit() {
    return "the work of the real code: %.2f blocks copied, summed and compared a step on %d processors"
        .formatted(
            (double) counts.blocksMoved / counts.steps, Runtime.getRuntime().availableProcessors());
  }

  private static void line(StringBuilder table, String name, String value) {
    table.append(String.format(Locale.ROOT, "%-11s %s%n", name, value));
  }

  private static String join(Map<String, Long> counts) {
    StringBuilder joined = new StringBuilder();
    counts.forEach((name, count) ->
        joined
            .append(joined.isEmpty() ? "" : ", ")
            .append(String.format(Locale.ROOT, "%s %,d", name, count)));
    return joined.toString();
  }

  private void appendFailure(StringBuilder table) {
    table.append(
        String.format(
            Locale.ROOT,
            "%nseed %d breaks a rule in step %,d: %s%n  %s%nshrunk to %d steps: %s%n",
            failure.seed(),
            failure.steps(),
            failure.rule().text(),
            failure.detail(),
            failure.shrunkSteps(),
            failure.shrunkDetail()));
    failure.schedule().forEach(each -> table.append(each).append(System.lineSeparator()));
    table.append(
        String.format(
            Locale.ROOT,
            "again: orbitkv simulate --seeds %1$d..%1$d --steps %2$d --engines %3$d%n",
            failure.seed(),
            simulation.steps(),
            simulation.engines()));
  }

  /**
   * One JSON object.
   *
   * @param elapsedNs how long the runs took
   */
  public String toJson(long elapsedNs) {
    JsonMapper json = new JsonMapper();
    ObjectNode node = json.createObjectNode();
    node.put("first_seed", simulation.firstSeed()).put("last_seed", simulation.lastSeed());
    node.put("engines", simulation.engines()).put("steps_a_run", simulation.steps());
    node.put("runs", counts.runs).put("steps", counts.steps);
    node.put("seconds", elapsedNs / NANOS).put("steps_a_second", stepsPerSecond(elapsedNs));
    put(node, "publishes", counts.publishes.byName());
    put(node, "restores", counts.restores.byName());
    put(node, "lookups", lookups());
    put(node, "faults", faults());
    node.put("blocks_compared", counts.verifiedBlocks).put("blocks_moved", counts.blocksMoved);
    node.put("operations_retained", counts.retained);
    node.put("blocks_evicted", counts.evictions).put("blocks_from_ssd", counts.ssdLoads);
    node.put("violations", failure == null ? 0 : 1);
    if (failure != null) {
      ObjectNode failed = node.putObject("failure");
      failed.put("seed", failure.seed()).put("rule", failure.rule().text());
      failed.put("detail", failure.detail()).put("steps", failure.steps());
      failed.put("shrunk_steps", failure.shrunkSteps());
      failed.put("shrunk_detail", failure.shrunkDetail());
      failure.schedule().forEach(failed.putArray("schedule")::add);
    }
    return json.writerWithDefaultPrettyPrinter().writeValueAsString(node);
  }

  private static void put(ObjectNode node, String name, Map<String, Long> counts) {
    ObjectNode to = node.putObject(name);
    counts.forEach((key, count) -> to.put(key.replace(' ', '_'), count.longValue()));
  }
}
