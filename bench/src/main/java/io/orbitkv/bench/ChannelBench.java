package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.HIGHER;
import static io.orbitkv.bench.BenchCase.Better.LOWER;

import com.sun.management.ThreadMXBean;
import io.orbitkv.client.BlockHashes;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Round trips between two processes: over the raw rings, and as empty commands to a Manager, beside
 * rings of the same layout in C; and what steady round trips and lookups allocate.
 */
final class ChannelBench implements Benches.Bench {
  private static final int ROUNDS = 9;
  private static final int ROUND_TRIPS = 200_000;
  private static final int COMMANDS = 2_000_000;
  private static final int IN_FLIGHT = 32;
  private static final int WARM_UP = 100_000;
  private static final long POOL_BYTES = 64L << 20;
  private static final int BLOCK_BYTES = 4096;
  private static final int LOOKUP_HASHES = 64;

  @Override
  public List<BenchCase> run(BenchContext context) throws IOException {
    List<BenchCase> cases = new ArrayList<>(rings(context));
    cases.addAll(manager(context));
    return cases;
  }

  private static List<BenchCase> rings(BenchContext context) throws IOException {
    String label = context.reference().label("ring", "raw ring in C");
    try (RingClient ring = RingClient.start(context)) {
      Rounds p50 =
          Rounds.run(
              ROUNDS, () -> ring.p50Ns(ROUND_TRIPS), reference(context, "p50_ns", ROUND_TRIPS, 1));
      Rounds single =
          Rounds.run(
              ROUNDS,
              () -> ring.roundTripRate(ROUND_TRIPS),
              reference(context, "ops_per_s", ROUND_TRIPS, 1));
      Rounds many =
          Rounds.run(
              ROUNDS,
              () -> ring.rate(COMMANDS, IN_FLIGHT),
              reference(context, "ops_per_s", COMMANDS, IN_FLIGHT));
      return List.of(
          p50.as("ring round trip p50", "ns", LOWER, label),
          single.as("ring round trips", "1/s", HIGHER, label),
          many.as("ring commands, " + IN_FLIGHT + " in flight", "1/s", HIGHER, label));
    }
  }

  private static Measurement reference(BenchContext context, String figure, int count, int inFlight)
      throws IOException {
    if (!context.reference().has("ring")) {
      return null;
    }
    return () ->
        context
            .reference()
            .run("ring", context.clientCpu(), context.serverCpu(), count, inFlight)
            .get(figure);
  }

  private static List<BenchCase> manager(BenchContext context) throws IOException {
    String label = context.reference().label("ring", "raw ring in C");
    try (ManagerProcess manager =
            context.onServerCpu(() -> ManagerProcess.start(context.command(), POOL_BYTES));
        Engine engine = Engine.open(manager.socket(), BLOCK_BYTES, LOOKUP_HASHES)) {
      pings(engine, WARM_UP);
      Rounds p50 =
          Rounds.run(
              ROUNDS,
              () -> Arrays.stream(pings(engine, ROUND_TRIPS)).sorted().toArray()[ROUND_TRIPS / 2],
              reference(context, "p50_ns", ROUND_TRIPS, 1));
      Rounds rate =
          Rounds.run(
              ROUNDS, () -> pingRate(engine), reference(context, "ops_per_s", ROUND_TRIPS, 1));
      return List.of(
          p50.as("empty command p50", "ns", LOWER, label),
          rate.as("empty commands", "1/s", HIGHER, label),
          pingAllocation(engine),
          lookupAllocation(engine));
    }
  }

  private static long[] pings(Engine engine, int count) {
    long[] times = new long[count];
    for (int i = 0; i < count; i++) {
      long start = System.nanoTime();
      engine.client().ping();
      times[i] = System.nanoTime() - start;
    }
    return times;
  }

  private static double pingRate(Engine engine) {
    long start = System.nanoTime();
    for (int i = 0; i < ROUND_TRIPS; i++) {
      engine.client().ping();
    }
    return ROUND_TRIPS * 1e9 / (System.nanoTime() - start);
  }

  private static BenchCase pingAllocation(Engine engine) throws IOException {
    return allocation(
        "empty command, allocated",
        () -> {
          for (int i = 0; i < ROUND_TRIPS; i++) {
            engine.client().ping();
          }
        });
  }

  private static BenchCase lookupAllocation(Engine engine) throws IOException {
    long[] ids = new long[LOOKUP_HASHES];
    Arrays.setAll(ids, i -> i);
    BlockHashes hashes = Mix.hashes(0, ids);
    engine.publish(hashes, 0, null);
    byte[] namespace = engine.namespace();
    long[] lease = new long[2];
    lookups(engine, namespace, hashes, lease, WARM_UP);
    return allocation(
        "lookup and release of " + LOOKUP_HASHES + " hashes, allocated",
        () -> lookups(engine, namespace, hashes, lease, ROUND_TRIPS));
  }

  private static void lookups(
      Engine engine, byte[] namespace, BlockHashes hashes, long[] lease, int count) {
    for (int i = 0; i < count; i++) {
      if (engine.client().lookupPrefix(namespace, hashes, lease) != LOOKUP_HASHES) {
        throw new IllegalStateException("lookup: published blocks are missing");
      }
      engine.client().release(lease[0]);
    }
  }

  /** Bytes that all threads of this process have allocated. */
  private static long allocatedBytes() {
    return ((ThreadMXBean) ManagementFactory.getThreadMXBean()).getTotalThreadAllocatedBytes();
  }

  private static BenchCase allocation(String name, Runnable operations) throws IOException {
    Rounds rounds =
        Rounds.run(
            ROUNDS,
            () -> {
              long before = allocatedBytes();
              operations.run();
              return (double) (allocatedBytes() - before) / ROUND_TRIPS;
            },
            () -> 0);
    return rounds.as(name, "B/op", LOWER, "nothing is wanted");
  }
}
