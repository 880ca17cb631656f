package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.core.PolicyDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** What the eviction policy costs a block, over few and many resident blocks. */
final class PolicyBench implements Benches.Bench {
  private static final int ROUNDS = 9;
  private static final int BLOCKS_A_ROUND = 100_000;
  private static final int[] RESIDENT = {100_000, 1_000_000};
  private static final int[] BATCHES = {1, 64};
  private static final double BOUND_NS = 1000;

  private static final List<String> PARTS =
      List.of("use", "eviction", "insertion", "eviction and insertion");

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
    PolicyDriver driver =
        new PolicyDriver(resident, batch, System::nanoTime, new SplittableRandom(1)::nextLong);
    for (int played = 0; played < resident; played += BLOCKS_A_ROUND) {
      round(driver, batch); // the blocks of the start are gone, and the code is compiled
    }
    double[][] times = new double[PARTS.size()][ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
      double[] each = round(driver, batch);
      for (int part = 0; part < each.length; part++) {
        times[part][i] = each[part];
      }
    }
    List<BenchCase> cases = new ArrayList<>();
    for (int part = 0; part < PARTS.size(); part++) {
      cases.add(
          new BenchCase(
              "%s, %d at once over %d blocks".formatted(PARTS.get(part), batch, resident),
              "ns/block",
              Rounds.median(times[part]),
              BOUND_NS,
              "its bound",
              LOWER,
              ROUNDS));
    }
    return cases;
  }

  /** Nanoseconds a block of each of {@link #PARTS}, with as many uses as blocks stored. */
  private static double[] round(PolicyDriver driver, int batch) {
    double hit = 0;
    double evict = 0;
    double insert = 0;
    int calls = BLOCKS_A_ROUND / batch;
    for (int i = 0; i < calls; i++) {
      hit += driver.hit(batch);
      evict += driver.evict(batch);
      insert += driver.insert(batch);
    }
    double blocks = (double) calls * batch;
    return new double[] {hit / blocks, evict / blocks, insert / blocks, (evict + insert) / blocks};
  }
}
