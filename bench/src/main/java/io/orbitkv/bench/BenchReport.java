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
 */
public record BenchReport(String name, String machine, boolean quiet, List<BenchCase> cases) {
  /** Copies the list. */
  public BenchReport {
    cases = List.copyOf(cases);
  }

  /** One JSON object. */
  public String toJson() {
    JsonMapper json = new JsonMapper();
    ObjectNode node = json.createObjectNode();
    node.put("name", name).put("machine", machine).put("quiet", quiet);
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
