package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.HIGHER;
import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.channel.Status;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.RestoreResult;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Restores of blocks in DRAM while other engines keep the SSD busy with blocks that only it has,
 * beside the same restores while they do nothing. Who restores has a processor of its own, as in
 * the other benchmarks; the Manager and the other engines share another one.
 */
final class SsdNeighbourBench {
  static final String NAME = "restore of 1 MiB from DRAM beside a busy SSD";

  private static final int BLOCK = 1 << 20;
  private static final long POOL_BYTES = 512L << 20;
  private static final long SSD_BYTES = 3L << 30;
  private static final long STORED_BLOCKS = (SSD_BYTES - (256L << 20)) / BLOCK;
  private static final int BATCH = 32;
  private static final int READERS = 3;
  private static final int HOT_BLOCKS = 64;
  private static final long SEED = 7;
  private static final int ROUNDS = 10;
  private static final int MICROS = 1000;

  private SsdNeighbourBench() {}

  static List<BenchCase> measure(BenchContext context, Path directory) throws IOException {
    try (ManagerProcess manager = context.onServerCpu(() -> start(context, directory));
        Readers readers = new Readers(manager.socket());
        Restorer restorer = new Restorer(manager.socket())) {
      readers.fill();
      restorer.fill();
      context.onServerCpu(readers::start);
      return compare(manager, readers, restorer, context.scope().roundNs(ROUNDS));
    }
  }

  private static ManagerProcess start(BenchContext context, Path directory) throws IOException {
    return ManagerProcess.start(
        context.command(),
        POOL_BYTES,
        "--ssd-cache-path",
        directory.toString(),
        "--ssd-cache-capacity",
        Long.toString(SSD_BYTES));
  }

  private static List<BenchCase> compare(
      ManagerProcess manager, Readers readers, Restorer restorer, long roundNs) throws IOException {
    restorer.times(roundNs);
    Side alone = new Side();
    Side busy = new Side();
    double[] rates = new double[ROUNDS];
    double cpu = 0;
    double bytes = 0;
    for (int i = 0; i < 2 * ROUNDS; i++) {
      if (i % 4 == 0 || i % 4 == 3) { // alone, busy, busy, alone
        alone.add(restorer.times(roundNs));
        continue;
      }
      double cpuBefore = manager.cpuSeconds();
      long blocksBefore = readers.blocks();
      long start = System.nanoTime();
      readers.go();
      busy.add(restorer.times(roundNs));
      readers.pause();
      double read = (readers.blocks() - blocksBefore) * (double) BLOCK;
      rates[i / 2] = read / (System.nanoTime() - start);
      cpu += manager.cpuSeconds() - cpuBefore;
      bytes += read;
    }
    return List.of(
        new BenchCase(
            NAME + ", p50", "us", busy.p50(), alone.p50(), "the same alone", LOWER, ROUNDS),
        new BenchCase(
            NAME + ", p90", "us", busy.p90(), alone.p90(), "the same alone", LOWER, ROUNDS),
        new BenchCase(
            NAME + ": SSD reads", "GB/s", Rounds.median(rates), null, "none", HIGHER, ROUNDS),
        new BenchCase(
            NAME + ": Manager's CPU", "s/GB", cpu / (bytes / 1e9), null, "none", LOWER, ROUNDS));
  }

  /** Percentiles of each round. */
  private static final class Side {
    private final List<Double> p50 = new ArrayList<>();
    private final List<Double> p90 = new ArrayList<>();

    void add(double[] sortedMicros) {
      p50.add(sortedMicros[sortedMicros.length / 2]);
      p90.add(sortedMicros[sortedMicros.length * 9 / 10]);
    }

    double p50() {
      return Rounds.median(p50.stream().mapToDouble(Double::doubleValue).toArray());
    }

    double p90() {
      return Rounds.median(p90.stream().mapToDouble(Double::doubleValue).toArray());
    }
  }

  /** Restores blocks that a lease keeps in DRAM. */
  private static final class Restorer implements AutoCloseable {
    private final Engine engine;
    private final BlockHashes[] hot = new BlockHashes[HOT_BLOCKS];
    private int next;

    Restorer(Path socket) {
      engine = Engine.open(socket, BLOCK, HOT_BLOCKS);
    }

    /** Publishes the blocks and keeps a lease on each. */
    void fill() {
      for (int i = 0; i < HOT_BLOCKS; i++) {
        hot[i] = Mix.hashes(SEED, STORED_BLOCKS + i);
        require(engine.publish(hot[i], 0, null).stored() == 1, "not stored");
        require(engine.lookup(hot[i]).leases().size() == 1, "not in DRAM");
      }
    }

    /** Times of restores, sorted, in microseconds. */
    double[] times(long forNs) {
      List<Double> micros = new ArrayList<>();
      long end = System.nanoTime() + forNs;
      while (System.nanoTime() < end) {
        int at = next++ % HOT_BLOCKS;
        Lease lease = engine.lookup(hot[at]).leases().getFirst();
        long start = System.nanoTime();
        RestoreResult result = engine.restore(lease, new int[] {at});
        micros.add((System.nanoTime() - start) / (double) MICROS);
        require(result.status() == Status.OK, result.message());
      }
      require(engine.lookupsWaited() == 0, "a block in DRAM was loaded");
      return micros.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    }

    private static void require(boolean condition, String message) {
      if (!condition) {
        throw new IllegalStateException("blocks in DRAM: " + message);
      }
    }

    @Override
    public void close() {
      engine.close();
    }
  }

  /** Several engines, so that the tier always has loads that wait. */
  private static final class Readers implements AutoCloseable {
    private final List<Reader> all = new ArrayList<>();

    Readers(Path socket) {
      try {
        for (int i = 0; i < READERS; i++) {
          all.add(new Reader(socket, i));
        }
      } catch (RuntimeException e) {
        close();
        throw e;
      }
    }

    void fill() {
      all.getFirst().fill();
    }

    Readers start() {
      all.forEach(Reader::start);
      return this;
    }

    void go() {
      all.forEach(Reader::go);
    }

    void pause() {
      all.forEach(Reader::pause);
    }

    long blocks() {
      return all.stream().mapToLong(reader -> reader.blocks.get()).sum();
    }

    @Override
    public void close() {
      all.forEach(Reader::close);
    }
  }

  /** Has blocks loaded that are on SSD alone, many at once. */
  private static final class Reader implements AutoCloseable {
    private final Engine engine;
    private final SplittableRandom random;
    private final Semaphore turn = new Semaphore(0, true);
    private final Thread thread = Thread.ofPlatform().daemon().unstarted(this::run);
    private volatile boolean closed;
    private final AtomicLong blocks = new AtomicLong();
    private volatile RuntimeException failure;

    Reader(Path socket, int number) {
      engine = Engine.open(socket, BLOCK, BATCH);
      random = new SplittableRandom(SEED + number);
    }

    /** Publishes more than the pool holds, in chains. */
    void fill() {
      for (long chain = 0; chain < STORED_BLOCKS / BATCH; chain++) {
        engine.publish(hashes(chain), 0, null);
      }
    }

    private static BlockHashes hashes(long chain) {
      long[] ids = new long[BATCH];
      for (int i = 0; i < BATCH; i++) {
        ids[i] = chain * BATCH + i;
      }
      return Mix.hashes(SEED, ids);
    }

    void start() {
      thread.start();
    }

    void go() {
      turn.release();
    }

    void pause() {
      turn.acquireUninterruptibly();
      if (failure != null) {
        throw failure;
      }
    }

    private void run() {
      while (!closed) {
        turn.acquireUninterruptibly();
        try {
          load(random.nextLong(STORED_BLOCKS / BATCH));
        } catch (RuntimeException e) { // told to the one who pauses
          failure = e;
        }
        turn.release();
      }
    }

    private void load(long chain) {
      long before = engine.lookupsWaited();
      LookupResult found = engine.lookup(hashes(chain));
      if (engine.lookupsWaited() > before) {
        blocks.addAndGet(found.prefix());
      }
      found.leases().forEach(engine.client()::release);
    }

    @Override
    public void close() {
      closed = true;
      turn.release();
      try {
        thread.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      engine.close();
    }
  }
}
