package io.orbitkv.bench;

import java.util.List;
import java.util.Locale;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * All figures of a benchmark.
 *
 * @param name name of the benchmark
 * @param machine processor, kernel and JVM
 * @param quiet whether the machine was idle enough before the start
 * @param cases the figures
 * @param mostRatio how many times worse than its reference a figure may be; null when nothing is
 *     demanded
 */
public record BenchReport(
    String name, String machine, boolean quiet, List<BenchCase> cases, Double mostRatio) {
  /** Copies the list. */
  public BenchReport {
    cases = List.copyOf(cases);
  }

  /** A report that demands nothing. */
  public BenchReport(String name, String machine, boolean quiet, List<BenchCase> cases) {
    this(name, machine, quiet, cases, null);
  }

  /** Cases that are worse than demanded, by name. */
  public List<String> missed() {
    return mostRatio == null
        ? List.of()
        : cases.stream().filter(this::misses).map(BenchCase::name).toList();
  }

  private boolean misses(BenchCase each) {
    if (each.reference() == null) {
      return true;
    }
    boolean met =
        each.better() == BenchCase.Better.LOWER
            ? each.ours() <= each.reference() * mostRatio
            : each.ours() * mostRatio >= each.reference();
    return !met; // also for what is no number
  }

  /** One JSON object. */
  public String toJson() {
    JsonMapper json = new JsonMapper();
    ObjectNode node = json.createObjectNode();
    node.put("name", name).put("machine", machine).put("quiet", quiet);
    if (mostRatio != null) {
      node.put("most_ratio", mostRatio).put("met", missed().isEmpty());
      missed().forEach(node.putArray("missed")::add);
    }
    ArrayNode list = node.putArray("cases");
    for (BenchCase each : cases) {
      list.addObject()
          .put("case", each.name())
          .put("unit", each.unit())
          .put("ours", each.ours())
          .put("reference", each.reference())
          .put("reference_name", each.referenceName())
          .put("ratio", each.ratio())
          .put("better", each.better().toString())
          .put("rounds", each.rounds());
    }
    return json.writerWithDefaultPrettyPrinter().writeValueAsString(node);
  }

  /** A table for people. */
  public String toTable() {
    StringBuilder table = new StringBuilder();
    table.append(text("%s on %s%s%n", name, machine, quiet ? "" : " (the machine was not idle)"));
    table.append(
        text(
            "%-44s %12s %12s %7s %-6s %-6s  %s%n",
            "case", "ours", "reference", "ratio", "unit", "better", "reference is"));
    for (BenchCase each : cases) {
      table.append(
          text(
              "%-44s %12s %12s %7s %-6s %-6s  %s%n",
              each.name(),
              figure(each.ours()),
              figure(each.reference()),
              each.ratio() == null ? "-" : text("%.2f", each.ratio()),
              each.unit(),
              each.better(),
              each.referenceName()));
    }
    if (mostRatio != null) {
      String verdict = missed().isEmpty() ? "met" : "missed by " + String.join(", ", missed());
      table.append(text("goal: at most %.2f x the reference: %s%n", mostRatio, verdict));
    }
    return table.toString();
  }

  private static String figure(Double value) {
    if (value == null) {
      return "-";
    }
    return Math.abs(value) >= 1000 ? text("%,.0f", value) : text("%.3f", value);
  }

  @SuppressWarnings("AnnotateFormatMethod") // the annotation would be one more dependency
  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
