package io.orbitkv.app;

import io.orbitkv.bench.BenchReport;
import io.orbitkv.bench.BenchScope;
import io.orbitkv.bench.Benches;
import io.orbitkv.bench.Comparison;
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
      description = "channel, copy, lookup, policy, ssd, start, vllm, or all of them but vllm.")
  private String name;

  @Option(
      names = "--against",
      paramLabel = "COMMIT",
      description =
          "Instead of a benchmark: build an earlier commit of this source tree in a temporary"
              + " folder, and compare round trip, lookup, restore and publish with it.")
  private String against;

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Write the result as JSON; - is standard output.")
  private String json;

  @Option(
      names = "--case",
      paramLabel = "TEXT",
      description = "Only the cases whose names contain this (ssd).")
  private String only = "";

  @Option(
      names = "--seconds",
      paramLabel = "N",
      description =
          "Time of each side of a case (ssd); default ${DEFAULT-VALUE}. Less is a first look.")
  private int seconds = BenchScope.DEFAULT_SECONDS;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    BenchReport report = against == null ? runNamed() : compare();
    if (json != null) {
      JsonFile.write(json, report.toJson());
    }
    if (!"-".equals(json)) {
      System.out.print(report.toTable());
    }
    return 0;
  }

  private BenchReport runNamed() throws IOException {
    if (!Benches.names().contains(name)) {
      throw new ParameterException(
          spec.commandLine(),
          (name == null ? "NAME is missing" : "benchmark \"" + name + "\" is unknown")
              + "; allowed: "
              + String.join(", ", Benches.names()));
    }
    BenchScope scope = new BenchScope(only, seconds);
    if (seconds < 1) {
      throw new ParameterException(
          spec.commandLine(), "--seconds is " + seconds + ", allowed: 1 and more");
    }
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
    return Comparison.run(Path.of(root), against);
  }
}
