package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.bench.Engine;
import io.orbitkv.channel.Status;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.LookupResult;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** The SSD tier outlives its Manager, however that ends; what it serves is what was published. */
class SsdRestartTest {
  private static final int BLOCK = 64 << 10;
  private static final int CHAIN = 16;
  private static final long CAPACITY = 1L << 30;
  private static final int MAX_CHAINS_A_ROUND = 40;
  private static final int MAX_GAP = 2 * CHAIN; // writes in progress at a kill
  private static final int MAX_KILL_DELAY_MICROS = 400_000;
  private static final int CLEARS = 10;
  private static final Pattern DURABLE = Pattern.compile("durable +true\n");

  /** Bound of what a clean stop writes: more than a slow disk needs that others use too. */
  private static final String DRAIN_SECONDS = "120";

  @TempDir private Path directory;

  private TestManager start() throws IOException {
    return start(directory);
  }

  private static TestManager start(Path directory, String... flags) throws IOException {
    List<String> all = new ArrayList<>(List.of(flags));
    all.addAll(List.of("--ssd-cache-path", directory.toString()));
    all.addAll(List.of("--ssd-cache-capacity", Long.toString(CAPACITY)));
    return TestManager.start(64, all.toArray(String[]::new));
  }

  private static BlockHashes hashes(long chain) {
    byte[] bytes = new byte[32 * CHAIN];
    ByteBuffer into = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < CHAIN; i++) {
      SplittableRandom random = new SplittableRandom(chain * 1000 + i);
      for (int word = 0; word < 4; word++) {
        into.putLong(random.nextLong());
      }
    }
    return BlockHashes.of(bytes, 32);
  }

  private static long word(long chain, int block, long at) {
    return (chain * 1000 + block + 1) * 0x9e37_79b9_7f4a_7c15L + at * 0x2545_f491_4f6c_dd1dL;
  }

  private static void publish(Engine engine, long chain) {
    for (int i = 0; i < CHAIN; i++) {
      MemorySegment page = engine.page(i);
      for (long at = 0; at < BLOCK; at += Long.BYTES) {
        page.set(ValueLayout.JAVA_LONG, at, word(chain, i, at));
      }
    }
    Status status = engine.publish(hashes(chain), 0, null).status();
    assertThat(status).isIn(Status.OK, Status.POOL_FULL);
  }

  /** Restores what is held of a chain, compares every byte, and returns how many blocks it was. */
  private static int verify(Engine engine, long chain) {
    LookupResult found = engine.lookup(hashes(chain));
    if (found.leases().isEmpty()) {
      return 0;
    }
    int blocks = found.prefix();
    for (int i = 0; i < blocks; i++) {
      engine.page(i).fill((byte) 0x5a);
    }
    assertThat(engine.restore(found.leases().getFirst(), blocks).status()).isEqualTo(Status.OK);
    for (int i = 0; i < blocks; i++) {
      for (long at = 0; at < BLOCK; at += Long.BYTES) {
        if (engine.page(i).get(ValueLayout.JAVA_LONG, at) != word(chain, i, at)) {
          throw new AssertionError("wrong bytes: chain=" + chain + ", block=" + i + ", at=" + at);
        }
      }
    }
    return blocks;
  }

  private static JsonNode ssd(TestManager manager) {
    return manager.status().get("ssd");
  }

  @Test
  void shouldServeAfterACleanStopAllThatWasResident() throws IOException {
    int chains = 100; // more than the pool holds
    try (TestManager manager = start(directory, "--drain-timeout", DRAIN_SECONDS)) {
      try (Engine engine = Engine.open(manager.socket(), BLOCK, CHAIN)) {
        for (long chain = 0; chain < chains; chain++) {
          publish(engine, chain);
        }
      }
      manager.terminate();
      long size = Files.size(directory.resolve("orbitkv.ssd"));
      manager.startAgain();
      long recovered = ssd(manager).get("recovered").get("blocks").asLong();
      assertThat(recovered).isGreaterThanOrEqualTo((64L << 20) / BLOCK * 9 / 10);
      long blocks = 0;
      try (Engine engine = Engine.open(manager.socket(), BLOCK, CHAIN)) {
        for (long chain = 0; chain < chains; chain++) {
          blocks += verify(engine, chain);
        }
      }
      assertThat(blocks).isGreaterThanOrEqualTo(recovered * 9 / 10); // whole chains were written
      assertThat(ssd(manager).get("read_blocks_total").asLong()).isPositive();
      assertThat(ssd(manager).get("crc_failures_total").asLong()).isZero();
      assertThat(Files.size(directory.resolve("orbitkv.ssd"))).isEqualTo(size);
      manager.awaitBaseline(0);
    }
  }

  @Test
  void shouldRefuseAFileThatAnotherManagerHasOpen() throws IOException {
    try (TestManager _ = start()) {
      Path output = directory.resolve("second.txt");
      List<String> line = new ArrayList<>(TestManager.program());
      line.addAll(List.of("manager", "--pool-size", "64mb", "--http-addr", "127.0.0.1:0"));
      line.addAll(List.of("--socket", directory.resolve("second.sock").toString()));
      line.addAll(List.of("--ssd-cache-path", directory.toString()));
      line.addAll(List.of("--ssd-cache-capacity", Long.toString(CAPACITY)));
      Process second =
          new ProcessBuilder(line)
              .redirectErrorStream(true)
              .redirectOutput(output.toFile())
              .start();
      assertThat(second.onExit().join().exitValue()).isEqualTo(1);
      assertThat(Files.readString(output)).contains("in use by another Manager");
    }
  }

  @Test
  void shouldLoseNothingThatWasVisibleWhenItIsKilled() throws IOException {
    killRounds(directory, 4, 1);
  }

  @Tag("long")
  @Test
  void shouldLoseNothingThatWasVisibleInManyKills() throws IOException {
    for (int file = 0; file < 20; file++) { // so that no file becomes full
      Path next = Files.createDirectory(directory.resolve("file-" + file));
      killRounds(next, 10, 100 + file);
      Files.delete(next.resolve("orbitkv.ssd"));
    }
  }

  /**
   * Each round publishes some chains, kills the Manager a drawn time later, while blocks and tables
   * are on their way to the disk, and reads everything that was ever published.
   */
  private static void killRounds(Path directory, int rounds, long seed) throws IOException {
    SplittableRandom random = new SplittableRandom(seed);
    long chains = 0;
    try (TestManager manager = start(directory)) {
      for (int round = 0; round < rounds; round++) {
        long from = chains;
        chains += random.nextInt(1, MAX_CHAINS_A_ROUND + 1);
        long visible = publishAndKill(manager, from, chains, random.nextInt(MAX_KILL_DELAY_MICROS));
        manager.startAgain();
        JsonNode found = ssd(manager);
        assertThat(found.get("segments_free").asInt()).isPositive();
        long recovered = found.get("recovered").get("blocks").asLong();
        assertThat(recovered).as("seed=%d, round=%d", seed, round).isGreaterThanOrEqualTo(visible);
        assertThat(found.get("recovered").get("damaged_segments").asInt()).isZero();
        verifyAll(manager, chains, recovered, (round + 1) * MAX_GAP);
      }
    }
  }

  /** Reads all chains; a prefix does not reach the blocks behind a gap that a kill left. */
  private static void verifyAll(TestManager manager, long chains, long recovered, int gaps)
      throws IOException {
    long verified = 0;
    try (Engine engine = Engine.open(manager.socket(), BLOCK, CHAIN)) {
      for (long chain = 0; chain < chains; chain++) {
        verified += verify(engine, chain);
      }
    }
    assertThat(verified).isBetween(recovered - gaps, recovered);
    assertThat(ssd(manager).get("crc_failures_total").asLong()).isZero();
  }

  @Test
  void shouldClearAndExplainOverTheCommandLine() throws IOException {
    try (TestManager manager = start();
        Engine engine = Engine.open(manager.socket(), BLOCK, CHAIN)) {
      publish(engine, 1);
      manager.await("the table", status -> status.get("ssd").get("blocks").asInt() == CHAIN);
      String namespace = HexFormat.of().formatHex(engine.namespace());
      String hash = HexFormat.of().formatHex(hashes(1).get(3));
      String stranger = HexFormat.of().formatHex(hashes(2).get(3));
      String other = "ab".repeat(32);
      assertThat(run(manager, "explain", "--namespace", namespace, hash))
          .contains("in DRAM, and on SSD");
      assertThat(run(manager, "explain", "--namespace", namespace, stranger))
          .contains("never stored");
      assertThat(run(manager, "explain", "--namespace", other, hash)).contains("another namespace");

      LookupResult leased = engine.lookup(hashes(1));
      assertThat(run(manager, "clear", "--namespace", other)).containsPattern("dram blocks +0\n");
      assertThat(clearForGood(manager, namespace))
          .containsPattern("dram blocks +16\n")
          .containsPattern("ssd blocks +16\n");
      assertThat(engine.lookup(hashes(1)).leases()).isEmpty();
      assertThat(engine.restore(leased.leases().getFirst(), CHAIN).status()).isEqualTo(Status.OK);
      manager.await("the rows", status -> status.get("resident_blocks").asInt() == 0);
      assertThat(run(manager, "explain", "--namespace", namespace, hash))
          .contains("removed by a clear");

      manager.kill();
      manager.startAgain();
      assertThat(ssd(manager).get("blocks").asInt()).isZero();
      assertThat(ssd(manager).get("recovered").get("cleared_blocks").asInt()).isEqualTo(CHAIN);
    }
  }

  /** Clears until a restart would know of it, and returns what the first time said. */
  private static String clearForGood(TestManager manager, String namespace) throws IOException {
    String first = run(manager, "clear", "--namespace", namespace);
    String last = first;
    for (int i = 0; i < CLEARS && !DURABLE.matcher(last).find(); i++) {
      manager.await(
          "the clear on disk", status -> status.get("ssd").get("waiting_clears").asInt() == 0);
      last = run(manager, "clear", "--namespace", namespace);
    }
    assertThat(last).containsPattern(DURABLE);
    return first;
  }

  private static String run(TestManager manager, String... arguments) throws IOException {
    List<String> line = new ArrayList<>(TestManager.program());
    line.addAll(List.of(arguments));
    line.addAll(List.of("--socket", manager.socket().toString()));
    Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.onExit().join().exitValue()).as(output).isZero();
    return output;
  }

  /** Publishes chains and kills the Manager; returns how many blocks were visible on SSD then. */
  private static long publishAndKill(TestManager manager, long from, long to, int delayMicros) {
    try (Engine engine = Engine.open(manager.socket(), BLOCK, CHAIN)) {
      for (long chain = from; chain < to; chain++) {
        publish(engine, chain);
      }
      LockSupport.parkNanos(delayMicros * 1_000L);
      long visible = ssd(manager).get("blocks").asLong();
      manager.kill();
      return visible;
    }
  }
}
