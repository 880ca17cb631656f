package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.HIGHER;
import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdPort;
import io.orbitkv.linux.CpuClock;
import io.orbitkv.linux.Ids;
import io.orbitkv.linux.Mapping;
import io.orbitkv.storage.SsdStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/**
 * Reads and writes of the SSD tier beside fio on another part of the same file, the time in which
 * an index of ten million blocks is found again, and restores from DRAM beside a busy SSD. Every
 * block is checked as in a Manager.
 */
final class SsdBench implements Benches.Bench {
  private static final int[] BLOCK_BYTES = {256 << 10, 1 << 20, 2 << 20};
  private static final int[] DEPTHS = {1, 8};
  private static final int MAX_DEPTH = 8;
  private static final int MAX_BLOCK = 2 << 20;
  private static final long CAPACITY = 4L << 30;
  private static final long REGION = 1L << 30; // ours at the start of the file, fio's behind it
  private static final int ROUNDS = 8;
  private static final double GIGA = 1e9;
  private static final long PARK_NS = 1_000_000;

  /** One store with blocks of one size in flight. */
  private static final class Runner {
    private final SsdStore store;
    private final int bytes;
    private final int depth;
    private final int firstPage;
    private final int pagesASegment;
    private final int crc;
    private final int blocks;
    private int next;
    private int inFlight;

    Runner(SsdStore store, MemorySegment pool, int bytes, int depth) {
      SsdConfig config = store.coreConfig(SsdConfig.WritePolicy.ALL, 0, 0);
      this.store = store;
      this.bytes = bytes;
      this.depth = depth;
      this.firstPage = config.firstPage();
      this.pagesASegment = config.pages();
      this.blocks = (int) (REGION / ((long) pagesASegment * SsdPort.PAGE_BYTES)) * blocksASegment();
      CRC32C sum = new CRC32C();
      ByteBuffer block = pool.asSlice(0, bytes).asByteBuffer();
      sum.update(block);
      this.crc = (int) sum.getValue();
      for (int i = 1; i < depth; i++) {
        MemorySegment.copy(pool, 0, pool, (long) i * bytes, bytes);
      }
    }

    private int blocksASegment() {
      return (pagesASegment - firstPage) / (bytes / SsdPort.PAGE_BYTES);
    }

    private void begin(boolean write, int slot) {
      int block = next++ % blocks;
      int segment = block / blocksASegment();
      int page = firstPage + block % blocksASegment() * (bytes / SsdPort.PAGE_BYTES);
      inFlight++;
      if (write) {
        store.write(slot, segment, page, 0, (long) slot * bytes, bytes, crc);
      } else {
        store.read(slot, segment, page, 0, (long) slot * bytes, bytes, crc);
      }
    }

    /** Bytes a second while {@code depth} requests are in progress. */
    double rate(boolean write, long forNs) {
      long start = System.nanoTime();
      long[] done = new long[1];
      for (int slot = 0; slot < depth; slot++) {
        begin(write, slot);
      }
      while (inFlight > 0) {
        int taken =
            store.poll((slot, result) -> {
              if (result != SsdPort.OK) {
                throw new IllegalStateException("SSD request: result=" + result);
              }
              inFlight--;
              done[0]++;
              if (System.nanoTime() - start < forNs) {
                begin(write, slot);
              }
            });
        if (taken == 0) {
          LockSupport.parkNanos(PARK_NS);
        }
      }
      return done[0] * (double) bytes * 1e9 / (System.nanoTime() - start);
    }

    /** Writes all blocks, so that reads find them. */
    void fill() {
      next = 0;
      for (int i = 0; i < blocks; i++) {
        begin(true, 0);
        while (inFlight > 0) {
          store.poll((_, _) -> inFlight--);
          LockSupport.parkNanos(PARK_NS);
        }
      }
    }
  }

  @Override
  public List<BenchCase> run(BenchContext context) throws IOException {
    List<BenchCase> cases = new ArrayList<>();
    Path directory = Files.createTempDirectory("orbitkv-bench-ssd-");
    try {
      cases.addAll(allThroughput(context.scope(), directory));
      if (context.scope().includes(SsdIndexBench.NAME)) {
        cases.add(SsdIndexBench.measure(directory.resolve("index")));
      }
      if (context.scope().includes(SsdNeighbourBench.NAME)) {
        cases.addAll(SsdNeighbourBench.measure(context, directory));
      }
    } finally {
      Files.deleteIfExists(directory.resolve("orbitkv.ssd"));
      Files.delete(directory);
    }
    return cases;
  }

  private static List<BenchCase> allThroughput(BenchScope scope, Path directory)
      throws IOException {
    List<BenchCase> cases = new ArrayList<>();
    if (kinds().noneMatch(kind -> scope.includes(kind.name()))) {
      return cases;
    }
    Thread me = Thread.currentThread();
    try (Mapping pool = Mapping.anonymous((long) MAX_DEPTH * MAX_BLOCK, true)) {
      pool.populateWrite(0, pool.byteSize());
      for (long at = 0; at < pool.byteSize(); at += Long.BYTES) {
        pool.segment().set(java.lang.foreign.ValueLayout.JAVA_LONG, at, Mix.mix(at));
      }
      try (SsdStore store =
          SsdStore.open(
              List.of(directory),
              CAPACITY,
              SsdStore.Backend.AUTO,
              false,
              List.of(pool.segment()),
              () -> LockSupport.unpark(me))) {
        Fio fio = new Fio(directory.resolve("orbitkv.ssd"), REGION * 2, REGION);
        new Runner(store, pool.segment(), MAX_BLOCK, 1).fill();
        fio.fill(MAX_BLOCK);
        long roundNs = scope.roundNs(ROUNDS);
        for (Kind kind : kinds().filter(kind -> scope.includes(kind.name())).toList()) {
          cases.addAll(throughput(store, pool.segment(), fio, kind, roundNs));
        }
      }
    }
    Files.delete(directory.resolve("orbitkv.ssd")); // room for the next one
    return cases;
  }

  /** One way of moving blocks. */
  private record Kind(boolean write, int bytes, int depth) {
    String name() {
      return String.format(
          Locale.ROOT, "%s %d KiB, depth %d", write ? "write" : "read", bytes >> 10, depth);
    }
  }

  /** Reads of each size before its writes: with other sizes they would find other checksums. */
  private static Stream<Kind> kinds() {
    List<Kind> kinds = new ArrayList<>();
    for (int bytes : BLOCK_BYTES) {
      for (int depth : DEPTHS) {
        kinds.add(new Kind(false, bytes, depth));
        kinds.add(new Kind(true, bytes, depth));
      }
    }
    return kinds.stream();
  }

  private static List<BenchCase> throughput(
      SsdStore store, MemorySegment pool, Fio fio, Kind kind, long roundNs) throws IOException {
    Runner runner = new Runner(store, pool, kind.bytes, kind.depth);
    if (!kind.write) {
      runner.fill();
    }
    double[] cpu = new double[2];
    Measurement ours =
        () -> {
          double before = CpuClock.cpuSeconds(Ids.pid());
          double rate = runner.rate(kind.write, roundNs);
          cpu[0] += CpuClock.cpuSeconds(Ids.pid()) - before;
          cpu[1] += rate * roundNs / 1e9;
          return rate / GIGA;
        };
    Measurement reference =
        fio.isInstalled()
            ? () -> fio.rate(kind.write, kind.bytes, kind.depth, roundNs) / GIGA
            : null;
    return List.of(
        Rounds.run(ROUNDS, ours, reference).as(kind.name(), "GB/s", HIGHER, fio.label()),
        new BenchCase(
            kind.name() + ": CPU", "s/GB", cpu[0] / (cpu[1] / GIGA), null, "none", LOWER, ROUNDS));
  }
}
