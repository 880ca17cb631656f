package io.orbitkv.bench.planner;

import io.orbitkv.bench.replay.Trace;
import io.orbitkv.core.SsdConfig;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntFunction;

/** Plays a trace over many cache sizes and policies. */
public final class Planner {
  /** Cache sizes when none are chosen, as shares of the distinct blocks. */
  public static final List<Double> DEFAULT_FRACTIONS =
      List.of(0.01, 0.02, 0.05, 0.10, 0.25, 0.50, 0.75, 1.0);

  private static final List<Double> TIER_DRAM = List.of(0.01, 0.05, 0.10);
  private static final List<Double> TIER_SSD = List.of(0.25, 0.50, 1.0);

  private final Trace trace;
  private final DenseTrace dense;
  private final List<Double> fractions;
  private final long blockBytes;

  /**
   * Prepares a run.
   *
   * @param fractions cache sizes as shares of the distinct blocks, each above 0 and at most 1
   * @param blockBytes bytes of a block, at least 1; only what is printed in bytes depends on it
   */
  public Planner(Trace trace, List<Double> fractions, long blockBytes) {
    for (double fraction : fractions) {
      if (!(fraction > 0 && fraction <= 1)) {
        throw new IllegalArgumentException("fraction=" + fraction + ", allowed: above 0, up to 1");
      }
    }
    if (blockBytes < 1) {
      throw new IllegalArgumentException("block bytes=" + blockBytes + ", allowed: 1 and more");
    }
    this.trace = trace;
    this.dense = DenseTrace.of(trace);
    this.fractions = List.copyOf(fractions);
    this.blockBytes = blockBytes;
    if (trace.longest() > CoreCache.MAX_BLOCKS) {
      throw new IllegalArgumentException(
          "trace "
              + trace.name()
              + " has a request of "
              + trace.longest()
              + " blocks, allowed: "
              + CoreCache.MAX_BLOCKS);
    }
    if (dense.blocks() == 0) {
      throw new IllegalArgumentException("trace " + trace.name() + " has no blocks");
    }
  }

  /** Runs everything. */
  public Plan run() {
    int ids = dense.blocks();
    Map<String, List<Plan.Point>> curves = new LinkedHashMap<>();
    curves.put(Plan.OURS, curve(CoreCache::new));
    curves.put("lru", curve(size -> new Lru(ids, size)));
    curves.put("s3_fifo", curve(size -> new S3Fifo(ids, size)));
    curves.put("w_tinylfu", curve(size -> new WTinyLfu(ids, size)));
    curves.put("arc", curve(size -> new Arc(ids, size)));
    curves.put(Plan.OPTIMUM, curve(size -> new BeladyPrefix(ids, size, dense.requests())));
    return new Plan(
        trace.name(),
        dense.requests().size(),
        dense.references(),
        ids,
        dense.hitRatio(new Lru(ids, ids)),
        blockBytes,
        curves,
        tiers());
  }

  private int size(double fraction) {
    return Math.max(1, (int) (fraction * dense.blocks()));
  }

  private List<Plan.Point> curve(IntFunction<PrefixCache> policy) {
    List<Plan.Point> points = new ArrayList<>();
    for (double fraction : fractions) {
      int size = size(fraction);
      try (PrefixCache cache = policy.apply(size)) {
        points.add(new Plan.Point(fraction, size, dense.hitRatio(cache)));
      }
    }
    return points;
  }

  private List<Plan.Tiers> tiers() {
    List<Plan.Tiers> tiers = new ArrayList<>();
    for (double dram : TIER_DRAM) {
      for (double ssd : TIER_SSD) {
        for (SsdConfig.WritePolicy writes : SsdConfig.WritePolicy.values()) {
          try (CoreCache cache = new CoreCache(size(dram), size(ssd), writes)) {
            double ratio = dense.hitRatio(cache);
            String name = writes.name().toLowerCase(Locale.ROOT);
            tiers.add(
                new Plan.Tiers(
                    dram,
                    ssd,
                    name,
                    ratio,
                    cache.writtenBlocks() * blockBytes,
                    cache.loadedBlocks() * blockBytes));
          }
        }
      }
    }
    return tiers;
  }
}
