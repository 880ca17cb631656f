package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import java.io.IOException;
import java.util.List;

/** Time from the start of a Manager process to ready, beside a program that only touches memory. */
final class StartBench implements Benches.Bench {
  private static final long POOL_BYTES = 1L << 30;
  private static final int ROUNDS = 7;
  private static final double ALLOWED_FACTOR = 1.3;
  private static final double ALLOWED_SECONDS = 0.25;

  @Override
  public List<BenchCase> run(BenchContext context) throws IOException {
    boolean has = context.reference().has("touch");
    Rounds rounds = Rounds.run(ROUNDS, () -> start(context), has ? () -> touch(context) : null);
    String label = context.reference().label("touch", "C, two threads touch the same memory");
    BenchCase start = rounds.as("start to ready, pool 1 GiB", "s", LOWER, label);
    if (!has) {
      return List.of(start);
    }
    return List.of(
        start,
        new BenchCase(
            "start to ready against its bound",
            "s",
            rounds.ours(),
            rounds.reference() * ALLOWED_FACTOR + ALLOWED_SECONDS,
            "1.3 x the touch in C + 0.25 s",
            LOWER,
            rounds.count()));
  }

  private static double start(BenchContext context) throws IOException {
    try (ManagerProcess manager = ManagerProcess.start(context.command(), POOL_BYTES)) {
      return manager.startTime().toNanos() / 1e9;
    }
  }

  private static double touch(BenchContext context) throws IOException {
    return context.reference().secondsToFirstLine("touch", POOL_BYTES);
  }
}
