package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.Command;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreOutput;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdPort;
import io.orbitkv.linux.Mapping;
import io.orbitkv.storage.SsdStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Time from opening a file with tables of many blocks until lookups would find all of them. */
final class SsdIndexBench {
  static final String NAME = "index of 10,000,000 blocks found again";

  private static final long BLOCKS = 10_000_000;
  private static final int BLOCK_BYTES = 4096;
  private static final long CAPACITY = 42L << 30;
  private static final long POOL_BYTES = 64L << 20;
  private static final int ROUNDS = 3;
  private static final double BOUND_SECONDS = 3;
  private static final long PARK_NS = 100_000;

  private SsdIndexBench() {}

  static BenchCase measure(Path directory) throws IOException {
    try {
      writeTables(directory);
      double[] seconds = new double[ROUNDS];
      for (int i = 0; i < ROUNDS; i++) {
        seconds[i] = recover(directory);
      }
      return new BenchCase(
          NAME, "s", Rounds.median(seconds), BOUND_SECONDS, "its bound", LOWER, ROUNDS);
    } finally {
      Files.deleteIfExists(directory.resolve("orbitkv.ssd"));
      Files.deleteIfExists(directory);
    }
  }

  private static SsdStore open(Path directory, MemorySegment pool) {
    return SsdStore.open(
        List.of(directory), CAPACITY, SsdStore.Backend.AUTO, false, List.of(pool), () -> {});
  }

  private static void writeTables(Path directory) {
    MemorySegment namespace = MemorySegment.ofArray(new byte[32]).fill((byte) 1);
    MemorySegment hash = MemorySegment.ofArray(new byte[32]);
    try (Mapping pool = Mapping.anonymous(POOL_BYTES, false);
        SsdStore store = open(directory, pool.segment())) {
      SsdConfig config = store.coreConfig(SsdConfig.WritePolicy.ALL, 0, 0);
      long block = 0;
      for (int segment = 0; segment < config.pathOfSegment().length; segment++) {
        store.openSegment(1, segment, segment + 1);
        await(store);
        for (int page = config.firstPage(); page < config.pages() && block < BLOCKS; page++) {
          for (int word = 0; word < 4; word++) {
            hash.set(ValueLayout.JAVA_LONG_UNALIGNED, 8L * word, Mix.mix(4 * block + word));
          }
          store.addEntry(segment, hash, 0, namespace, 0, 32, page, BLOCK_BYTES, (int) block);
          block++;
        }
        store.writeTable(1, segment, 0, true);
        await(store);
      }
    }
  }

  private static void await(SsdStore store) {
    while (store.poll(SsdIndexBench::requireDone) == 0) {
      LockSupport.parkNanos(PARK_NS);
    }
  }

  private static void requireDone(int request, int result) {
    if (result != SsdPort.OK) {
      throw new IllegalStateException("SSD request " + request + ": result=" + result);
    }
  }

  private static double recover(Path directory) {
    List<Mapping> tables = new ArrayList<>();
    try (Mapping pool = Mapping.anonymous(POOL_BYTES, false)) {
      long start = System.nanoTime();
      try (SsdStore store = open(directory, pool.segment())) {
        CacheCore core =
            new CacheCore(
                new CoreConfig(
                    new long[] {POOL_BYTES},
                    CoreConfig.slabBytesFor(POOL_BYTES),
                    POOL_BYTES,
                    POOL_BYTES,
                    CoreConfig.DEFAULT_LEASE_AGE_NS,
                    bytes -> {
                      Mapping table = Mapping.anonymous(bytes, bytes >= 2 << 20);
                      tables.add(table);
                      return table.segment();
                    }),
                1,
                new NoOutput(),
                store.coreConfig(SsdConfig.WritePolicy.ALL, 0, 0),
                store);
        long found = store.recover(core.ssdRecovery()).blocks();
        if (found != BLOCKS) {
          throw new IllegalStateException("blocks found=" + found + ", wanted=" + BLOCKS);
        }
        return (System.nanoTime() - start) / 1e9;
      }
    } finally {
      tables.forEach(Mapping::close);
    }
  }

  /** Nobody is there. */
  private static final class NoOutput implements CoreOutput {
    @Override
    public void reply(int session, int ring, Command reply) {}

    @Override
    public ByteRing.Producer replyBytes(int session, int ring) {
      throw new IllegalStateException("no session");
    }

    @Override
    public void wakeRestore(int session) {}

    @Override
    public void wakePublish(int session) {}

    @Override
    public void sessionSettled(int session) {}

    @Override
    public void unregistered(int session, int registrationId) {}

    @Override
    public void violation(int session, String what) {}
  }
}
