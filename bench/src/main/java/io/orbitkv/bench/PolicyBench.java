package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.core.PolicyDriver;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What the eviction policy costs a block, over few and many resident blocks. */
final class PolicyBench implements Benches.Bench {
  private static final int ROUNDS = 9;
  private static final int BLOCKS_A_ROUND = 100_000;
  private static final int[] RESIDENT = {100_000, 1_000_000};
  private static final int[] BATCHES = {1, 64};
  private static final double BOUND_NS = 1000;

  private enum Part {
    HIT("use"),
    EVICT("eviction"),
    INSERT("insertion"),
    STORE("eviction and insertion");

    private final String label;

    Part(String label) {
      this.label = label;
    }
  }

  @Override
  public List<BenchCase> run(BenchContext context) {
    List<BenchCase> cases = new ArrayList<>();
    context.pin();
    for (int resident : RESIDENT) {
      for (int batch : BATCHES) {
        cases.addAll(measure(resident, batch));
      }
    }
    return cases;
  }

  private static List<BenchCase> measure(int resident, int batch) {
    PolicyDriver driver = new PolicyDriver(resident, batch);
    for (int played = 0; played < resident; played += BLOCKS_A_ROUND) {
      round(driver, batch); // the blocks of the start are gone, and the code is compiled
    }
    double[][] times = new double[Part.values().length][ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
      double[] each = round(driver, batch);
      for (int part = 0; part < each.length; part++) {
        times[part][i] = each[part];
      }
    }
    return Arrays.stream(Part.values())
        .map(part ->
            new BenchCase(
                "%s, %d at once over %d blocks".formatted(part.label, batch, resident),
                "ns/block",
                Rounds.median(times[part.ordinal()]),
                BOUND_NS,
                "its bound",
                LOWER,
                ROUNDS))
        .toList();
  }

  /** Nanoseconds a block of each part, in a mix of as many uses as blocks stored. */
  private static double[] round(PolicyDriver driver, int batch) {
    double[] sums = new double[Part.values().length];
    int calls = BLOCKS_A_ROUND / batch;
    for (int i = 0; i < calls; i++) {
      sums[Part.HIT.ordinal()] += driver.hit(batch);
      sums[Part.EVICT.ordinal()] += driver.evict(batch);
      sums[Part.INSERT.ordinal()] += driver.insert(batch);
    }
    sums[Part.STORE.ordinal()] = sums[Part.EVICT.ordinal()] + sums[Part.INSERT.ordinal()];
    return Arrays.stream(sums).map(sum -> sum / (calls * batch)).toArray();
  }
}
