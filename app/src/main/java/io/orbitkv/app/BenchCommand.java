package io.orbitkv.app;

import io.orbitkv.bench.BenchReport;
import io.orbitkv.bench.BenchScope;
import io.orbitkv.bench.Benches;
import io.orbitkv.bench.Comparison;
import io.orbitkv.bench.replay.SoakBench;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs a benchmark. */
@Command(
    name = "bench",
    description = "Measures beside a reference in the same run; medians of interleaved rounds.")
final class BenchCommand implements Callable<Integer> {
  @Parameters(
      paramLabel = "NAME",
      arity = "0..1",
      description =
          "channel, copy, lookup, policy, ssd, start, vllm, or all of them but vllm; or soak, which"
              + " ends with 1 when something grows.")
  private String name;

  @Option(
      names = "--against",
      paramLabel = "COMMIT",
      description =
          "Instead of a benchmark: build an earlier commit of this source tree in a temporary"
              + " folder, and compare round trip, lookup, restore and publish with it; ends with 1 when"
              + " a p50 is more than 1.15 times as long.")
  private String against;

  @Option(
      names = "--rounds",
      paramLabel = "N",
      description = "Runs of each side with --against. Default: 5.")
  private int rounds = Comparison.DEFAULT_ROUNDS;

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Write the result as JSON; - is standard output.")
  private JsonFile json;

  @Option(
      names = "--case",
      paramLabel = "TEXT",
      description = "Only the cases whose names contain this (ssd).")
  private String only = "";

  @Option(
      names = "--seconds",
      paramLabel = "N",
      description =
          "Time of each side of a case of ssd, where less than the default of 16 is a first look; or"
              + " length of soak, by default 600.")
  private Integer seconds;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    check(rounds >= 1, "--rounds=" + rounds, "1 and more");
    check(seconds == null || seconds >= 1, "--seconds=" + seconds, "1 and more");
    BenchReport report = against == null ? runNamed() : compare();
    if (json != null) {
      json.write(report.toJson());
    }
    if (json == null || !json.isStandardOutput()) {
      System.out.print(report.toTable());
    }
    return report.missed().isEmpty() ? 0 : Main.FAILED;
  }

  private void check(boolean rule, String value, String allowed) {
    if (!rule) {
      throw new ParameterException(spec.commandLine(), value + ", allowed: " + allowed);
    }
  }

  private BenchReport runNamed() throws IOException {
    if (SoakBench.NAME.equals(name)) {
      int length = seconds == null ? SoakBench.DEFAULT_SECONDS : seconds;
      check(
          length >= SoakBench.LEAST_SECONDS && length <= SoakBench.MOST_SECONDS,
          "--seconds=" + length,
          SoakBench.LEAST_SECONDS + ".." + SoakBench.MOST_SECONDS);
      return SoakBench.run(SelfCommand.line(), length);
    }
    if (!Benches.names().contains(name)) {
      throw new ParameterException(
          spec.commandLine(),
          (name == null ? "NAME is missing" : "benchmark \"" + name + "\" is unknown")
              + "; allowed: "
              + String.join(", ", Benches.names())
              + ", "
              + SoakBench.NAME);
    }
    BenchScope scope = new BenchScope(only, seconds == null ? BenchScope.DEFAULT_SECONDS : seconds);
    if (!scope.equals(BenchScope.FULL) && !Benches.takesScope(name)) {
      throw new ParameterException(
          spec.commandLine(), "--case and --seconds are for ssd, but NAME is \"" + name + "\"");
    }
    return Benches.run(name, SelfCommand.line(), scope);
  }

  private BenchReport compare() throws IOException {
    String root = System.getProperty("orbitkv.root");
    if (name != null || root == null) {
      throw new ParameterException(
          spec.commandLine(),
          name != null
              ? "--against takes no NAME, but \"" + name + "\" is given"
              : "--against needs the script orbitkv of a source tree");
    }
    return Comparison.run(Path.of(root), against, rounds);
  }
}
