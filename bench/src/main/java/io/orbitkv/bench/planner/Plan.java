package io.orbitkv.bench.planner;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * What came of a planner's run.
 *
 * @param trace name of the trace
 * @param requests its requests
 * @param references its blocks over all requests
 * @param blocks its distinct blocks
 * @param unboundedRatio hit ratio of a cache that holds them all
 * @param blockBytes bytes of a block
 * @param curves points of each policy by name, {@link #OURS} first, all at the same sizes
 * @param tiers combinations of DRAM and SSD
 */
public record Plan(
    String trace,
    int requests,
    long references,
    int blocks,
    double unboundedRatio,
    long blockBytes,
    Map<String, List<Point>> curves,
    List<Tiers> tiers) {
  /** Name of the core's own curve. */
  public static final String OURS = "ours";

  /** Name of the curve that knows the future. */
  public static final String OPTIMUM = "belady_prefix";

  private static final double GIB = 1L << 30;

  /**
   * A cache size and its hit ratio.
   *
   * @param fraction size as a share of the distinct blocks
   * @param blocks size in blocks
   * @param prefixHitRatio share of the references that were held with every earlier block of their
   *     request
   */
  public record Point(double fraction, int blocks, double prefixHitRatio) {}

  /**
   * DRAM with SSD below.
   *
   * @param dramFraction DRAM as a share of the distinct blocks
   * @param ssdFraction SSD as a share of the distinct blocks
   * @param writePolicy {@code all} or {@code reuse}
   * @param prefixHitRatio of both together
   * @param writtenBytes bytes written to SSD
   * @param readBytes bytes read from SSD
   */
  public record Tiers(
      double dramFraction,
      double ssdFraction,
      String writePolicy,
      double prefixHitRatio,
      long writtenBytes,
      long readBytes) {}

  /** Copies the lists. */
  public Plan {
    tiers = List.copyOf(tiers);
  }

  /** One JSON object: a list of points for each curve by its name, and {@code tiers}. */
  public String toJson() {
    JsonMapper json = new JsonMapper();
    ObjectNode node = json.createObjectNode();
    node.put("trace", trace).put("requests", requests).put("block_references", references);
    node.put("distinct_blocks", blocks).put("unbounded_prefix_hit_ratio", unboundedRatio);
    node.put("block_bytes", blockBytes);
    curves.forEach((name, points) -> {
      ArrayNode list = node.putArray(name);
      for (Point point : points) {
        list.addObject()
            .put("fraction", point.fraction())
            .put("blocks", point.blocks())
            .put("prefix_hit_ratio", point.prefixHitRatio());
      }
    });
    ArrayNode list = node.putArray("tiers");
    for (Tiers each : tiers) {
      list.addObject()
          .put("dram_fraction", each.dramFraction())
          .put("ssd_fraction", each.ssdFraction())
          .put("write_policy", each.writePolicy())
          .put("prefix_hit_ratio", each.prefixHitRatio())
          .put("written_bytes", each.writtenBytes())
          .put("read_bytes", each.readBytes());
    }
    return json.writerWithDefaultPrettyPrinter().writeValueAsString(node);
  }

  /** Tables for people: the curves, then DRAM with SSD. */
  public String toTable() {
    StringBuilder table = new StringBuilder();
    table.append(
        String.format(
            Locale.ROOT,
            "%s: %,d requests, %,d blocks, %,d distinct; hit ratio without bound %.5f%n%n",
            trace,
            requests,
            references,
            blocks,
            unboundedRatio));
    table.append(String.format(Locale.ROOT, "%7s %9s %9s", "DRAM", "blocks", "GiB"));
    curves.keySet().forEach(name -> table.append(String.format(Locale.ROOT, " %13s", name)));
    table.append(String.format(Locale.ROOT, "%n"));
    List<Point> ours = curves.get(OURS);
    for (int i = 0; i < ours.size(); i++) {
      Point point = ours.get(i);
      table.append(
          String.format(
              Locale.ROOT,
              "%6.1f%% %,9d %9.2f",
              100 * point.fraction(),
              point.blocks(),
              gib(point.blocks())));
      for (List<Point> points : curves.values()) {
        table.append(String.format(Locale.ROOT, " %13.4f", points.get(i).prefixHitRatio()));
      }
      table.append(String.format(Locale.ROOT, "%n"));
    }
    appendTiers(table);
    return table.toString();
  }

  private double gib(long count) {
    return count * blockBytes / GIB;
  }

  private void appendTiers(StringBuilder table) {
    if (tiers.isEmpty()) {
      return;
    }
    table.append(
        String.format(
            Locale.ROOT,
            "%n%7s %7s %8s %9s %13s %10s%n",
            "DRAM",
            "SSD",
            "writes",
            "hit ratio",
            "GiB written",
            "GiB read"));
    for (Tiers each : tiers) {
      table.append(
          String.format(
              Locale.ROOT,
              "%6.1f%% %6.1f%% %8s %9.4f %13.2f %10.2f%n",
              100 * each.dramFraction(),
              100 * each.ssdFraction(),
              each.writePolicy(),
              each.prefixHitRatio(),
              each.writtenBytes() / GIB,
              each.readBytes() / GIB));
    }
  }
}
