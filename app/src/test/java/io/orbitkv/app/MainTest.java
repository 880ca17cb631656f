package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class MainTest {
  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  private int run(Map<String, String> environment, String... arguments) {
    CommandLine line = Main.commandLine(environment, arguments);
    line.setOut(new PrintWriter(out));
    line.setErr(new PrintWriter(err));
    return line.execute(arguments);
  }

  private void assertOneLine(String... parts) {
    assertThat(err.toString().lines()).hasSize(1);
    assertThat(err.toString()).startsWith("orbitkv: ").contains(parts);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "manager --pool-size 1pb|1pb|kb, mb, gb or tb",
        "manager --pool-size|--pool-size|SIZE",
        "manager --pool-shards x|--pool-shards|'x' is not an int",
        "manager --pool-sise 1gb|--pool-sise|Unknown option",
        "manager --log-level loud|loud|ERROR, WARN, INFO, DEBUG, TRACE",
        "manager --pool-size 64mb --http-addr 9091|9091|HOST:PORT",
        "manager --pool-size 64mb --http-addr localhost:70000|70000|65535",
        "manager --pool-size 64mb --pool-shards 65|65|1..64",
        "manager --pool-size 64mb --query-budget 65mb|68157440|pool",
        "manager extra|extra|Unmatched argument",
        "replay|TRACE|Missing required parameter",
        "replay none.jsonl|none.jsonl|mooncake-conversation",
        "replay mooncake-synthetic --limit 0|--limit=0|1 and more",
        "replay mooncake-synthetic --block-bytes 4|--block-bytes=4|8..",
        "bench fast|fast|channel, copy, lookup, policy, ssd, start, vllm, all",
        "bench|NAME|channel, copy, lookup, policy, ssd, start, vllm, all",
        "bench copy --against HEAD|copy|no NAME",
        "bench --against HEAD|--against|source tree",
        "plan|TRACE|Missing required parameter",
        "plan none.jsonl|none.jsonl|mooncake-conversation",
        "plan mooncake-synthetic --fractions 0.5,1.5|1.5|above 0, up to 1",
        "plan mooncake-synthetic --fractions 0.5,0.1|0.1|rising",
        "plan mooncake-synthetic --limit 0|--limit=0|1 and more",
        "plan mooncake-synthetic --block-bytes 0|--block-bytes=0|1 and more",
        "simulate --seeds 5..3|5..3|A..B with 0 <= A <= B",
        "simulate --seeds -1..3|-1..3|1..200",
        "simulate --seeds many|many|1..200",
        "simulate --seeds 1..1 --steps 0|steps=0|1..10000000",
        "simulate --seeds 1..1 --engines 33|engines=33|1..32",
        "nothing|nothing|Unmatched argument",
        "``|no command|manager, demo, replay, plan, simulate, bench, status"
      })
  void shouldAnswerWrongUseWithOneLineAndTwo(String command, String value, String rule) {
    String[] arguments = command.isEmpty() ? new String[0] : command.split(" ", -1);

    assertThat(run(Map.of(), arguments)).isEqualTo(2);
    assertOneLine(value, rule);
    assertThat(out.toString()).isEmpty();
  }

  @Test
  void shouldAnswerFailureWithOneLineAndOne() {
    assertThat(run(Map.of(), "status", "--socket", "/nonexistent/manager.sock")).isEqualTo(1);
    assertOneLine("/nonexistent/manager.sock");
  }

  @Test
  void shouldTakeFlagsFromEnvironment() {
    assertThat(run(Map.of("ORBITKV_POOL_SIZE", "much"), "manager")).isEqualTo(2);
    assertOneLine("much", "--pool-size");
  }

  @Test
  void shouldTakeSocketFromEnvironment() {
    assertThat(run(Map.of("ORBITKV_SOCKET", "/nonexistent/other.sock"), "status")).isEqualTo(1);
    assertOneLine("/nonexistent/other.sock");
  }

  @Test
  void shouldPreferFlagToEnvironment() {
    Map<String, String> environment = Map.of("ORBITKV_SOCKET", "/nonexistent/other.sock");

    assertThat(run(environment, "status", "--socket", "/nonexistent/given.sock")).isEqualTo(1);
    assertOneLine("/nonexistent/given.sock");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "manager", "demo", "replay", "bench", "status"})
  void shouldExplainEachCommand(String command) {
    String[] arguments =
        command.isEmpty() ? new String[] {"--help"} : new String[] {command, "--help"};

    assertThat(run(Map.of(), arguments)).isZero();
    assertThat(out.toString()).contains("Usage: orbitkv").contains("--help");
    assertThat(err.toString()).isEmpty();
  }

  @Test
  void shouldHideInternalFlags() {
    assertThat(run(Map.of(), "manager", "--help")).isZero();
    assertThat(out.toString()).doesNotContain("stdin").doesNotContain("exit-when-ready");
  }

  @Test
  void shouldPrintVersion() {
    assertThat(run(Map.of(), "--version")).isZero();
    assertThat(out.toString()).startsWith("orbitkv ");
  }
}
