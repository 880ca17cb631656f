package io.orbitkv.bench.replay;

import java.util.List;
import java.util.Locale;
import org.HdrHistogram.Histogram;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * What came of a replay.
 *
 * @param trace name of the trace
 * @param requests requests played
 * @param lookupBlocks blocks looked up
 * @param hitBlocks blocks that were restorable with every earlier block of their request
 * @param restoredBlocks blocks restored
 * @param publishedBlocks blocks stored by publishes
 * @param evictedBlocks blocks that the Manager evicted meanwhile
 * @param verifiedBytes restored bytes that were compared
 * @param wrongBytes bytes among them that were not as published
 * @param seconds duration of the whole
 * @param restoreSeconds time in restores
 * @param publishSeconds time in publishes
 * @param restoredBytes bytes restored
 * @param publishedBytes bytes stored
 * @param lookup duration of each lookup
 * @param restore duration of each restore
 * @param publish duration of each publish
 * @param managerCpuSeconds processor seconds of the Manager meanwhile
 * @param leaks what was not given back; empty when all is well
 */
public record ReplayResult(
    String trace,
    long requests,
    long lookupBlocks,
    long hitBlocks,
    long restoredBlocks,
    long publishedBlocks,
    long evictedBlocks,
    long verifiedBytes,
    long wrongBytes,
    double seconds,
    double restoreSeconds,
    double publishSeconds,
    long restoredBytes,
    long publishedBytes,
    Percentiles lookup,
    Percentiles restore,
    Percentiles publish,
    double managerCpuSeconds,
    List<String> leaks) {
  private static final double GIGA = 1e9;

  /**
   * Percentiles of durations.
   *
   * @param p50 median, in microseconds
   * @param p99 99th percentile, in microseconds
   */
  public record Percentiles(double p50, double p99) {
    /** Percentiles of nanoseconds. */
    static Percentiles of(Histogram nanoseconds) {
      return new Percentiles(
          nanoseconds.getValueAtPercentile(50) / 1e3, nanoseconds.getValueAtPercentile(99) / 1e3);
    }
  }

  /** Copies the list. */
  public ReplayResult {
    leaks = List.copyOf(leaks);
  }

  /** Share of the looked up blocks that were hit. */
  public double prefixHitRatio() {
    return lookupBlocks == 0 ? 0 : (double) hitBlocks / lookupBlocks;
  }

  /** True when every byte was right and everything was given back. */
  public boolean isClean() {
    return wrongBytes == 0 && leaks.isEmpty();
  }

  /** One JSON object. */
  public String toJson() {
    JsonMapper json = new JsonMapper();
    ObjectNode node = json.createObjectNode();
    node.put("trace", trace).put("requests", requests).put("lookup_blocks", lookupBlocks);
    node.put("hit_blocks", hitBlocks).put("prefix_hit_ratio", prefixHitRatio());
    node.put("restored_blocks", restoredBlocks).put("published_blocks", publishedBlocks);
    node.put("evicted_blocks", evictedBlocks).put("verified_bytes", verifiedBytes);
    node.put("wrong_bytes", wrongBytes).put("seconds", seconds);
    ObjectNode latency = node.putObject("latency_us");
    latency.putObject("lookup").put("p50", lookup.p50()).put("p99", lookup.p99());
    latency.putObject("restore").put("p50", restore.p50()).put("p99", restore.p99());
    latency.putObject("publish").put("p50", publish.p50()).put("p99", publish.p99());
    node.put("manager_cpu_seconds", managerCpuSeconds);
    leaks.forEach(node.putArray("leaks")::add);
    return json.writerWithDefaultPrettyPrinter().writeValueAsString(node);
  }

  /** A table for people. */
  public String toTable() {
    StringBuilder table = new StringBuilder();
    row(table, "trace", trace);
    row(table, "requests", count(requests));
    row(table, "blocks looked up", count(lookupBlocks));
    row(table, "  hit", count(hitBlocks) + text("  (%.2f %%)", 100 * prefixHitRatio()));
    row(table, "  restored", count(restoredBlocks));
    row(table, "  published", count(publishedBlocks));
    row(table, "  evicted", count(evictedBlocks));
    row(table, "bytes verified", count(verifiedBytes));
    row(table, "wrong bytes", count(wrongBytes));
    row(table, "lookup p50 / p99", micros(lookup));
    row(table, "restore p50 / p99", micros(restore) + rate(restoredBytes, restoreSeconds));
    row(table, "publish p50 / p99", micros(publish) + rate(publishedBytes, publishSeconds));
    row(table, "Manager CPU", text("%.2f s of %.1f s", managerCpuSeconds, seconds));
    row(table, "not given back", leaks.isEmpty() ? "nothing" : String.join("; ", leaks));
    return table.toString();
  }

  private static void row(StringBuilder table, String name, String value) {
    table.append(text("%-18s  %s%n", name, value));
  }

  private static String count(long value) {
    return text("%,d", value);
  }

  private static String micros(Percentiles percentiles) {
    return text("%,.1f / %,.1f us", percentiles.p50(), percentiles.p99());
  }

  private static String rate(long bytes, double seconds) {
    return seconds == 0 ? "" : text("  (%.2f GB/s)", bytes / seconds / GIGA);
  }

  @SuppressWarnings("AnnotateFormatMethod") // the annotation would be one more dependency
  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
