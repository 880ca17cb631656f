package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.LookupResult;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Time of a lookup a hash, over few and many resident blocks; each size in a Manager of its own.
 * The hashes of a lookup are those of a chain, as an engine asks for; scattered ones, which no
 * engine asks for together, show what it costs when no block lies beside the one before.
 */
final class LookupBench implements Benches.Bench {
  private static final int ROUNDS = 9;
  private static final int BLOCK_BYTES = 512;
  private static final int BATCH = 8192;
  private static final long FEW = 10_000;
  private static final long[] MANY = {1_000_000, 5_000_000};
  private static final int[] HASHES = {1, 64, 1000};
  private static final int HASHES_A_ROUND = 64_000;
  private static final int MOST_LOOKUPS = 10_000;

  @Override
  public List<BenchCase> run(BenchContext context) throws IOException {
    List<BenchCase> cases = new ArrayList<>();
    String same = "the same over " + FEW + " blocks";
    try (Side few = Side.start(context, FEW)) {
      for (long blocks : MANY) {
        try (Side many = Side.start(context, blocks)) {
          for (int hashes : HASHES) {
            cases.add(
                run(many, few, hashes, true)
                    .as(hashes + " hashes over " + blocks + " blocks", "ns/hash", LOWER, same));
            if (hashes > 1) {
              cases.add(
                  run(many, few, hashes, false)
                      .as(
                          hashes + " scattered hashes over " + blocks + " blocks",
                          "ns/hash",
                          LOWER,
                          same));
            }
          }
        }
      }
    }
    return cases;
  }

  private static Rounds run(Side many, Side few, int hashes, boolean chain) throws IOException {
    return Rounds.run(
        ROUNDS, () -> many.nsPerHash(hashes, chain), () -> few.nsPerHash(hashes, chain));
  }

  /** A Manager with resident blocks. */
  private record Side(ManagerProcess manager, Engine engine, ResidentBlocks blocks)
      implements AutoCloseable {
    static Side start(BenchContext context, long count) throws IOException {
      long poolBytes = Math.max(64L << 20, count * BLOCK_BYTES / 4 * 5);
      ManagerProcess manager =
          context.onServerCpu(() -> ManagerProcess.start(context.command(), poolBytes));
      Engine engine = null;
      try {
        engine = Engine.open(manager.socket(), BLOCK_BYTES, BATCH);
        ResidentBlocks blocks = new ResidentBlocks(engine, 0);
        blocks.publish(count, BATCH);
        return new Side(manager, engine, blocks);
      } catch (RuntimeException e) {
        try (manager) {
          if (engine != null) {
            engine.close();
          }
        }
        throw e;
      }
    }

    /** Median of some lookups; giving the leases back is not timed. */
    double nsPerHash(int hashes, boolean chain) {
      int lookups = Math.min(MOST_LOOKUPS, HASHES_A_ROUND / hashes);
      BlockHashes[] batches = new BlockHashes[lookups];
      for (int i = 0; i < lookups; i++) {
        batches[i] = chain ? blocks.chain(hashes) : blocks.random(hashes);
      }
      double[] times = new double[lookups];
      for (int i = 0; i < lookups; i++) {
        long start = System.nanoTime();
        LookupResult found = engine.lookup(batches[i]);
        times[i] = (double) (System.nanoTime() - start) / hashes;
        if (found.prefix() != hashes) {
          throw new IllegalStateException("lookup: wanted=" + hashes + ", found=" + found.prefix());
        }
        engine.client().release(found.leases().getFirst());
      }
      return Rounds.median(times);
    }

    @Override
    public void close() {
      try (manager) {
        engine.close();
      }
    }
  }
}
