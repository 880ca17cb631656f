package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Wrong values of every flag, on the command line and in the environment: always one line that says
 * what is wrong, and code 2. Commands are parsed and checked here, none gets as far as to run.
 */
class FlagFuzzTest {
  /** Of every kind that people, scripts and templates produce. */
  private static final List<String> WRONG =
      List.of(
          "-1",
          "-9223372036854775808",
          "9223372036854775808",
          "99999999999999999999999999999999",
          "1e400",
          "NaN",
          "0x10",
          "1.5.2mb",
          "1 gib",
          "1gbb",
          "1pb",
          "10%",
          "\u221e",
          "\uff11\uff12mb",
          "1mb\u00a0",
          "${POOL_SIZE}",
          "{{ .Values.size }}",
          "\"1gb\"",
          "nil",
          "a\nb",
          "a\r\n\tat x.Y(Z.java:1)",
          "\ud800",
          "-".repeat(1000));

  /** Ends a Manager whose flags were all accepted before it starts, and with another code. */
  private static final String TOO_LARGE = "4000000tb";

  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  private int run(Map<String, String> environment, List<String> arguments) {
    out.getBuffer().setLength(0);
    err.getBuffer().setLength(0);
    String[] line = arguments.toArray(String[]::new);
    CommandLine commands = Main.commandLine(environment, line);
    commands.setOut(new PrintWriter(out));
    commands.setErr(new PrintWriter(err));
    return commands.execute(line);
  }

  private void assertRefused(int code, Object what) {
    assertThat(code).as("%s: %s", what, err).isEqualTo(2);
    assertThat(err.toString().lines()).as("%s", what).hasSize(1);
    assertThat(err.toString())
        .as("%s", what)
        .startsWith("orbitkv: ")
        .doesNotContain("Exception:")
        .doesNotContain("java.")
        .doesNotContain("because")
        .doesNotContain("trace none");
    assertThat(out.toString()).as("%s", what).isEmpty();
  }

  /** Flags whose every value of {@link #WRONG} is wrong, with what their command needs besides. */
  static Stream<List<String>> typedFlags() {
    List<String> poolSize = List.of("manager", "--socket", "x.sock");
    List<String> manager = List.of("manager", "--socket", "x.sock", "--pool-size", TOO_LARGE);
    List<String> replay = List.of("replay", "none", "--socket", "x.sock");
    List<String> plan = List.of("plan", "none");
    List<String> bench = List.of("bench", "none");
    List<String> explain = List.of("explain", "00".repeat(32), "--socket", "x.sock");
    return Stream.of(
            flags(poolSize, "--pool-size"),
            flags(
                manager,
                "--pool-shards",
                "--http-addr",
                "--query-budget",
                "--query-instance-budget",
                "--use-hugepages",
                "--log-level",
                "--allow-uid",
                "--drain-timeout",
                "--ssd-cache-capacity",
                "--ssd-backend",
                "--ssd-write-policy",
                "--ssd-write-budget",
                "--ssd-cache-reset"),
            flags(replay, "--block-bytes", "--skip", "--limit"),
            flags(plan, "--block-bytes", "--fractions", "--limit"),
            flags(List.of("simulate"), "--seeds", "--steps", "--engines"),
            flags(bench, "--rounds", "--seconds"),
            flags(List.of("clear", "--socket", "x.sock"), "--namespace"),
            flags(explain, "--namespace"),
            flags(List.of("status", "--socket", "x.sock"), "--json", "--retained"))
        .flatMap(List::stream);
  }

  private static List<List<String>> flags(List<String> command, String... names) {
    List<List<String>> lines = new ArrayList<>();
    for (String name : names) {
      List<String> line = new ArrayList<>(command);
      line.add(name);
      lines.add(line);
    }
    return lines;
  }

  @ParameterizedTest
  @MethodSource("typedFlags")
  void shouldRefuseEveryWrongValue(List<String> line) {
    for (String wrong : WRONG) {
      List<String> given = new ArrayList<>(line);
      given.set(given.size() - 1, given.getLast() + "=" + wrong);
      assertRefused(run(Map.of(), given), given);
    }
  }

  @ParameterizedTest
  @MethodSource("typedFlags")
  void shouldRefuseEveryWrongValueOfTheEnvironment(List<String> line) {
    String variable = EnvironmentDefaults.variable(OptionSpec.builder(line.getLast()).build());
    for (String wrong : WRONG) {
      Map<String, String> environment = Map.of(variable, wrong);
      assertRefused(run(environment, line.subList(0, line.size() - 1)), environment);
    }
  }

  @ParameterizedTest
  @MethodSource("typedFlags")
  void shouldRefuseAFlagThatIsGivenTwice(List<String> line) {
    String flag = line.getLast();
    if (flag.equals("--allow-uid") || flag.equals("--fractions")) {
      return; // lists
    }
    List<String> twice = new ArrayList<>(line);
    String right = rightValue(flag);
    twice.set(twice.size() - 1, flag + right);
    twice.add(flag + right);
    assertRefused(run(Map.of(), twice), twice);
  }

  private static String rightValue(String flag) {
    return switch (flag) {
      case "--http-addr" -> "=127.0.0.1:0";
      case "--log-level" -> "=info";
      case "--ssd-backend" -> "=auto";
      case "--ssd-write-policy" -> "=all";
      case "--namespace" -> "=" + "00".repeat(32);
      case "--use-hugepages", "--ssd-cache-reset", "--json", "--retained" -> "";
      default -> "=1";
    };
  }

  /** Lengths that no command can mean, of what the Manager would refuse later. */
  @ParameterizedTest
  @MethodSource("tooShort")
  void shouldRefuseADigestOfAnotherLength(List<String> line) {
    assertRefused(run(Map.of(), line), line);
  }

  static Stream<List<String>> tooShort() {
    return Stream.of(
        List.of("clear", "--namespace", "00", "--socket", "x.sock"),
        List.of("clear", "--namespace=", "--socket", "x.sock"),
        List.of("clear", "--namespace", "00".repeat(33), "--socket", "x.sock"),
        List.of("explain", "--namespace", "00", "00".repeat(32), "--socket", "x.sock"),
        List.of("explain", "--namespace", "00".repeat(32), "0011", "--socket", "x.sock"),
        List.of("explain", "--namespace", "00".repeat(32), "00".repeat(33), "--socket", "x.sock"),
        List.of("explain", "--namespace", "00".repeat(32), "", "--socket", "x.sock"));
  }

  /** A path is anything, but this one can not be one. */
  @Test
  void shouldRefuseAPathThatCanNotBeOne() {
    String nul = "a\u0000b";
    for (List<String> line :
        List.of(
            List.of("manager", "--socket", nul),
            List.of("manager", "--socket", "x.sock", "--ssd-cache-path", nul),
            List.of("status", "--socket", nul),
            List.of("replay", nul),
            List.of("replay", "mooncake-synthetic", "--limit", "1", "--json", nul),
            List.of("plan", nul),
            List.of("plan", "mooncake-synthetic", "--limit", "1", "--json", nul),
            List.of("plan", "mooncake-synthetic", "--limit", "1", "--svg", nul),
            List.of("bench", "channel", "--json", nul))) {
      assertRefused(run(Map.of(), line), line);
    }
  }

  @Test
  void shouldRefuseAnythingThatIsNoCommand() {
    long seed = System.nanoTime();
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < 2000; i++) {
      StringBuilder word = new StringBuilder();
      for (int length = random.nextInt(1, 12); length > 0; length--) {
        word.append((char) random.nextInt(0x20, 0x3000));
      }
      if (!word.toString().startsWith("@")) { // a file of arguments
        assertRefused(run(Map.of(), List.of(word.toString())), "seed=" + seed + " " + word);
      }
    }
  }

  /** An empty variable counts as none, as templates leave them. */
  @Test
  void shouldTakeAnEmptyVariableAsNone() {
    Map<String, String> environment = new HashMap<>();
    typedFlags()
        .forEach(line ->
            environment.put(
                EnvironmentDefaults.variable(OptionSpec.builder(line.getLast()).build()), ""));
    assertThat(run(environment, List.of("manager", "--help"))).isZero();
    assertThat(run(environment, List.of("status", "--socket", "/nonexistent/x.sock"))).isEqualTo(1);
  }
}
