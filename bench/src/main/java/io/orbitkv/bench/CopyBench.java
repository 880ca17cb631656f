package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.HIGHER;
import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.channel.Status;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.Lease;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.RestoreResult;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Restore and publish (with checksum) of random blocks between a pool and pages, beside memcpy of
 * the same amounts at random places in one thread.
 */
final class CopyBench implements Benches.Bench {
  private static final int ROUNDS = 9;

  /** A round takes some 15 ms, and the JVMs compile for two seconds or three. */
  private static final int RATE_ROUNDS = 45;

  private static final long RATE_WARM_UP_NS = 3_000_000_000L;
  private static final int OPERATIONS = 4;
  private static final int OPERATION_BYTES = 32 << 20;
  private static final long POOL_BYTES = 1L << 30;
  private static final long RESIDENT_BYTES = POOL_BYTES / 4 * 3;
  private static final long PAGE_BYTES = 256L << 20;
  private static final int[] BLOCKS = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
  private static final int[] LATENCY_BLOCKS = {4 << 10, 64 << 10};
  private static final int LATENCY_OPERATIONS = 2000;
  private static final int COMPILING_OPERATIONS = 10_000;
  private static final String MEMCPY = "memcpy in C, one thread";
  private static final String NON_TEMPORAL = "non-temporal stores in C, one thread";

  @Override
  public List<BenchCase> run(BenchContext context) throws IOException {
    List<BenchCase> cases = new ArrayList<>();
    try (Peer peer = Peer.start(context)) {
      for (int block : BLOCKS) {
        cases.addAll(rates(context, peer, block));
      }
      for (int block : LATENCY_BLOCKS) {
        cases.addAll(latencies(context, peer, block));
      }
    }
    return cases;
  }

  /** As the client copies by default, with a helping thread, and with one thread on a processor. */
  private static List<BenchCase> rates(BenchContext context, Peer peer, int block)
      throws IOException {
    context.unpin();
    List<BenchCase> cases = new ArrayList<>();
    try (ManagerProcess manager = ManagerProcess.start(context.command(), POOL_BYTES)) {
      cases.addAll(rates(manager, peer, block, ""));
    }
    try (ManagerProcess manager =
        context.onServerCpu(() -> ManagerProcess.start(context.command(), POOL_BYTES))) {
      cases.addAll(rates(manager, peer, block, ", one thread"));
    }
    return cases;
  }

  private static List<BenchCase> rates(ManagerProcess manager, Peer peer, int block, String how)
      throws IOException {
    String blocks = "blocks of " + size(block) + how;
    try (Engine engine = Engine.open(manager.socket(), block, pages(block))) {
      Side side = new Side(engine, block, 0);
      side.blocks.publish(RESIDENT_BYTES / block, OPERATION_BYTES / block);
      compile(() -> side.restoreNs(1));
      BenchCase restore =
          Rounds.run(RATE_WARM_UP_NS, RATE_ROUNDS, side::restoreRate, peer.rate("out", block))
              .as("restore, " + blocks, "GB/s", HIGHER, peer.label(MEMCPY));
      BenchCase nonTemporal =
          Rounds.run(RATE_WARM_UP_NS, RATE_ROUNDS, side::restoreRate, peer.rate("nt", block))
              .as(
                  "restore, " + blocks + ", beside non-temporal",
                  "GB/s",
                  HIGHER,
                  peer.label(NON_TEMPORAL));
      compile(() -> side.publishNs(1)); // evicts: no restore after it
      BenchCase publish =
          Rounds.run(RATE_WARM_UP_NS, RATE_ROUNDS, side::publishRate, peer.rate("in", block))
              .as("publish, " + blocks, "GB/s", HIGHER, peer.label(MEMCPY));
      return List.of(restore, nonTemporal, publish);
    }
  }

  /** Lets both processes compile their code, which few operations of many blocks would not do. */
  private static void compile(Runnable operation) {
    for (int i = 0; i < COMPILING_OPERATIONS; i++) {
      operation.run();
    }
  }

  private static List<BenchCase> latencies(BenchContext context, Peer peer, int block)
      throws IOException {
    String size = size(block);
    try (ManagerProcess manager =
            context.onServerCpu(() -> ManagerProcess.start(context.command(), POOL_BYTES));
        Engine engine = Engine.open(manager.socket(), block, pages(OPERATION_BYTES))) {
      Side side = new Side(engine, block, 0);
      side.blocks.publish(1024, engine.pages());
      return List.of(
          Rounds.run(ROUNDS, side::restoreMicros, peer.micros("out", block))
              .as("restore of one block of " + size + ", p50", "us", LOWER, peer.label(MEMCPY)),
          Rounds.run(ROUNDS, side::publishMicros, peer.micros("in", block))
              .as("publish of one block of " + size + ", p50", "us", LOWER, peer.label(MEMCPY)));
    }
  }

  private static int pages(int block) {
    return Math.toIntExact(PAGE_BYTES / block);
  }

  private static String size(int bytes) {
    return bytes >= 1 << 20 ? (bytes >> 20) + " MiB" : (bytes >> 10) + " KiB";
  }

  /** The program in C. */
  private record Peer(BenchContext context, Reference.Conversation program)
      implements AutoCloseable {
    static Peer start(BenchContext context) throws IOException {
      return new Peer(
          context,
          context.reference().has("copy")
              ? context.reference().converse("copy", context.clientCpu(), POOL_BYTES, PAGE_BYTES)
              : null);
    }

    String label(String name) throws IOException {
      return context.reference().label("copy", name);
    }

    Measurement rate(String kind, int block) {
      return program == null
          ? null
          : () -> {
            double seconds = 0;
            for (int i = 0; i < OPERATIONS; i++) {
              seconds += program.ask(kind + " " + block + " " + OPERATION_BYTES);
            }
            return OPERATIONS * (double) OPERATION_BYTES / seconds / 1e9;
          };
    }

    Measurement micros(String kind, int block) {
      return program == null
          ? null
          : () -> {
            double[] times = new double[LATENCY_OPERATIONS];
            for (int i = 0; i < times.length; i++) {
              times[i] = program.ask(kind + " " + block + " " + block) * 1e6;
            }
            return Rounds.median(times);
          };
    }

    @Override
    public void close() throws IOException {
      if (program != null) {
        program.close();
      }
    }
  }

  /** Our side: one engine and what it published. */
  private static final class Side {
    private final Engine engine;
    private final int block;
    private final ResidentBlocks blocks;
    private int page;

    private Side(Engine engine, int block, long resident) {
      this.engine = engine;
      this.block = block;
      this.blocks = new ResidentBlocks(engine, resident);
    }

    private double restoreRate() {
      long ns = 0;
      for (int i = 0; i < OPERATIONS; i++) {
        ns += restoreNs(OPERATION_BYTES / block);
      }
      return (double) OPERATIONS * OPERATION_BYTES / ns;
    }

    private double publishRate() {
      long ns = 0;
      for (int i = 0; i < OPERATIONS; i++) {
        ns += publishNs(OPERATION_BYTES / block);
      }
      return (double) OPERATIONS * OPERATION_BYTES / ns;
    }

    private double restoreMicros() {
      double[] times = new double[LATENCY_OPERATIONS];
      for (int i = 0; i < times.length; i++) {
        times[i] = restoreNs(1) / 1e3;
      }
      return Rounds.median(times);
    }

    private double publishMicros() {
      double[] times = new double[LATENCY_OPERATIONS];
      for (int i = 0; i < times.length; i++) {
        times[i] = publishNs(1) / 1e3;
      }
      return Rounds.median(times);
    }

    private long restoreNs(int count) {
      BlockHashes hashes = blocks.random(count);
      Lease lease = engine.lookup(hashes).leases().getFirst();
      int[] targets = nextPages(count);
      long start = System.nanoTime();
      RestoreResult result = engine.restore(lease, targets);
      long took = System.nanoTime() - start;
      require(result.status() == Status.OK && lease.blocks() == count, result.message());
      return took;
    }

    private long publishNs(int count) {
      BlockHashes hashes = blocks.next(count);
      int[] sources = nextPages(count);
      long start = System.nanoTime();
      PublishResult result = engine.publish(hashes, 0, null, sources);
      long took = System.nanoTime() - start;
      require(result.stored() == count, result.message());
      return took;
    }

    private int[] nextPages(int count) {
      int[] result = new int[count];
      for (int i = 0; i < count; i++) {
        result[i] = page++ % engine.pages();
      }
      return result;
    }

    private static void require(boolean condition, String message) {
      if (!condition) {
        throw new IllegalStateException("not all blocks were copied: " + message);
      }
    }
  }
}
