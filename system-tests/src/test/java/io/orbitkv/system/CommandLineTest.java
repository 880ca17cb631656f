package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The command line as a user meets it: each command in a process of its own. */
class CommandLineTest {
  private static final long BOUND_SECONDS = 300;

  @TempDir private Path directory;

  /** What a command left. */
  private record Ended(int code, String out, String err) {}

  private Process begin(String... arguments) throws IOException {
    return command(arguments).start();
  }

  private ProcessBuilder command(String... arguments) {
    List<String> line = new ArrayList<>(TestManager.program());
    line.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(line).directory(directory.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("ORBITKV_"));
    return builder
        .redirectOutput(directory.resolve("out").toFile())
        .redirectError(directory.resolve("err").toFile());
  }

  private Ended end(Process process) throws Exception {
    if (!process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("command did not end within " + BOUND_SECONDS + " s");
    }
    return new Ended(
        process.exitValue(),
        Files.readString(directory.resolve("out"), StandardCharsets.UTF_8),
        Files.readString(directory.resolve("err"), StandardCharsets.UTF_8));
  }

  private Ended run(String... arguments) throws Exception {
    return end(begin(arguments));
  }

  @ParameterizedTest
  @CsvSource({
    "manager --pool-size 1furlong, 1furlong",
    "manager --http-addr nowhere, nowhere",
    "manager --pool-shards 0, 0",
    "manager --no-such-flag, --no-such-flag",
    "replay, TRACE",
    "bench nothing, nothing",
    "frobnicate, frobnicate"
  })
  void shouldRefuseAWrongFlagInOneLine(String line, String named) throws Exception {
    Ended ended = run((line + (line.startsWith("manager") ? " --socket x.sock" : "")).split(" "));
    assertThat(ended.code()).isEqualTo(2);
    assertThat(ended.err().lines()).hasSize(1);
    assertThat(ended.err()).contains(named).doesNotContain("Exception");
  }

  @Test
  void shouldRefuseAPoolThatIsNotToBeHad() throws Exception {
    Ended ended = run("manager", "--pool-size", "100tb", "--socket", "x.sock");
    assertThat(ended.code()).isNotZero();
    assertThat(ended.err().lines()).hasSize(1);
    assertThat(ended.err()).contains("pool").doesNotContain("Exception");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--help",
        "manager --help",
        "replay --help",
        "bench --help",
        "status --help",
        "demo --help"
      })
  void shouldExplainItself(String line) throws Exception {
    Ended ended = run(line.split(" "));
    assertThat(ended.code()).isZero();
    assertThat(ended.out()).contains("Usage:");
  }

  @Test
  void shouldStartSaySoAndStopOnSigterm() throws Exception {
    Path socket = directory.resolve("manager.sock");
    Process manager =
        begin(
            "manager",
            "--pool-size",
            "64mb",
            "--socket",
            socket.toString(),
            "--http-addr",
            "127.0.0.1:0");
    awaitReady(manager);
    Ended second = statusOf(socket);
    assertThat(second.code()).isZero();
    manager.destroy();
    Ended ended = end(manager);
    assertThat(ended.code()).isZero();
    assertThat(ended.out()).contains("pool").contains(socket.toString());
    assertThat(socket).doesNotExist();
    try (Stream<Path> left = Files.list(directory)) {
      assertThat(left.map(path -> path.getFileName().toString()))
          .containsExactlyInAnyOrder("out", "err", "out2", "err2");
    }
  }

  private Ended statusOf(Path socket) throws Exception {
    List<String> line = new ArrayList<>(TestManager.program());
    line.addAll(List.of("status", "--socket", socket.toString()));
    Process process =
        new ProcessBuilder(line)
            .redirectOutput(directory.resolve("out2").toFile())
            .redirectError(directory.resolve("err2").toFile())
            .start();
    assertThat(process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS)).isTrue();
    return new Ended(
        process.exitValue(),
        Files.readString(directory.resolve("out2"), StandardCharsets.UTF_8),
        Files.readString(directory.resolve("err2"), StandardCharsets.UTF_8));
  }

  private void awaitReady(Process manager) throws Exception {
    Path out = directory.resolve("out");
    await(
        manager,
        "the ready line",
        () -> Files.readString(out).lines().anyMatch(line -> line.startsWith("ready ")));
  }

  private void await(Process process, String what, Callable<Boolean> reached) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!reached.call()) {
      assertThat(process.isAlive()).as(Files.readString(directory.resolve("err"))).isTrue();
      assertThat(System.nanoTime()).as("bound for " + what).isLessThan(deadline);
      process.waitFor(20, TimeUnit.MILLISECONDS);
    }
  }

  @Test
  void shouldRefuseASecondManagerOnASocketNamingTheFirst() throws Exception {
    try (TestManager manager = TestManager.start()) {
      Ended ended =
          run(
              "manager",
              "--pool-size",
              "64mb",
              "--socket",
              manager.socket().toString(),
              "--http-addr",
              "127.0.0.1:0");
      assertThat(ended.code()).isNotZero();
      assertThat(ended.err()).contains("pid=" + manager.pid()).doesNotContain("Exception");
      assertThat(manager.answers()).isTrue();
    }
  }

  @Test
  void shouldTakeOverTheSocketOfAKilledManager() throws Exception {
    Path socket = directory.resolve("manager.sock");
    for (int i = 0; i < 2; i++) {
      Process manager =
          begin(
              "manager",
              "--pool-size",
              "64mb",
              "--socket",
              socket.toString(),
              "--http-addr",
              "127.0.0.1:0");
      awaitReady(manager);
      manager.destroyForcibly();
      assertThat(manager.waitFor(60, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(socket).exists();
  }

  @Test
  void shouldReplayATraceWithTheHitRatioOfAnUnboundedCache() throws Exception {
    JsonNode result = replay(256, "mooncake-conversation", 4096, 1500);
    Unbounded unbounded = Unbounded.of("mooncake-conversation", 1500);
    assertThat(result.get("requests").asInt()).isEqualTo(1500);
    assertThat(result.get("lookup_blocks").asLong()).isEqualTo(unbounded.references());
    assertThat(result.get("hit_blocks").asLong()).isEqualTo(unbounded.hits());
    assertThat(result.get("evicted_blocks").asLong()).isZero();
    assertClean(result);
  }

  @Test
  void shouldEvictAndServeNoWrongByteWhenThePoolIsTooSmall() throws Exception {
    JsonNode result = replay(64, "mooncake-synthetic", 65_536, 600);
    assertThat(result.get("evicted_blocks").asLong()).isPositive();
    assertThat(result.get("hit_blocks").asLong()).isPositive();
    assertClean(result);
  }

  @Tag("long")
  @ParameterizedTest
  @CsvSource({"mooncake-conversation, 0.36641", "mooncake-synthetic, 0.63960"})
  void shouldReachTheUnboundedRatioOfAWholeTrace(String trace, double ratio) throws Exception {
    JsonNode result = replay(2048, trace, 4096, Integer.MAX_VALUE);
    assertThat(result.get("prefix_hit_ratio").asDouble())
        .isCloseTo(ratio, org.assertj.core.data.Offset.offset(5e-6));
    assertClean(result);
  }

  @Tag("long")
  @Test
  void shouldPlayAWholeTraceThroughASmallPool() throws Exception {
    JsonNode result = replay(1024, "mooncake-conversation", 65_536, Integer.MAX_VALUE);
    assertThat(result.get("evicted_blocks").asLong()).isPositive();
    assertClean(result);
  }

  @Tag("long")
  @Test
  void shouldNotGrowUnderLoadOnEverySession() throws Exception {
    Path json = directory.resolve("soak.json");
    Ended ended = run("bench", "soak", "--seconds", "240", "--json", json.toString());
    assertThat(ended.code()).as(ended.out() + ended.err()).isZero();
    JsonNode report = new JsonMapper().readTree(Files.readString(json));
    assertThat(report.get("met").asBoolean()).isTrue();
    assertThat(report.get("cases").size()).isEqualTo(11);
  }

  @ParameterizedTest
  @CsvSource({"INT, false", "INT, true", "TERM, false"})
  void shouldLeaveNothingOfADemoThatIsEnded(String signal, boolean childrenToo) throws Exception {
    Path temporary = Files.createDirectory(directory.resolve("temporary"));
    ProcessBuilder builder =
        command(
            "demo",
            "--ssd",
            "--ssd-cache-path",
            temporary.toString(),
            "--ssd-cache-capacity",
            "1gb",
            "--pool-size",
            "256mb");
    builder.environment().put("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=" + temporary);
    Process demo = builder.start();
    await(demo, "a Manager and an engine", () -> demo.descendants().count() == 2);
    List<ProcessHandle> children = demo.descendants().toList();
    List<String> kill = new ArrayList<>(List.of("kill", "-" + signal, "" + demo.pid()));
    children.stream().filter(_ -> childrenToo).forEach(child -> kill.add("" + child.pid()));
    assertThat(new ProcessBuilder(kill).start().waitFor()).isZero();
    Ended ended = end(demo);
    assertThat(ended.code()).as(ended.err()).isEqualTo(signal.equals("INT") ? 130 : 143);
    assertThat(ended.err()).doesNotContain("Exception");
    for (ProcessHandle child : children) {
      child.onExit().get(BOUND_SECONDS, TimeUnit.SECONDS);
    }
    assertThat(temporary).isEmptyDirectory();
  }

  private JsonNode replay(int poolMiB, String trace, int blockBytes, int limit) throws Exception {
    Path json = directory.resolve("result.json");
    try (TestManager manager = TestManager.start(poolMiB)) {
      Ended ended =
          run(
              "replay",
              trace,
              "--socket",
              manager.socket().toString(),
              "--block-bytes",
              Integer.toString(blockBytes),
              "--limit",
              Integer.toString(limit),
              "--json",
              json.toString());
      assertThat(ended.code()).as(ended.err()).isZero();
      manager.awaitBaseline(0);
      return new JsonMapper().readTree(Files.readString(json));
    }
  }

  private static void assertClean(JsonNode result) {
    assertThat(result.get("wrong_bytes").asLong()).isZero();
    assertThat(result.get("verified_bytes").asLong()).isPositive();
    assertThat(result.get("leaks").size()).as(result.get("leaks").toString()).isZero();
  }
}
