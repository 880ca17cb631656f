package io.orbitkv.app;

import io.orbitkv.bench.BenchReport;
import io.orbitkv.bench.Benches;
import java.io.IOException;
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
  @Parameters(paramLabel = "NAME", description = "channel, copy, lookup, start or all.")
  private String name;

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Write the result as JSON; - is standard output.")
  private String json;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    if (!Benches.names().contains(name)) {
      throw new ParameterException(
          spec.commandLine(),
          "benchmark \"" + name + "\" is unknown; allowed: " + String.join(", ", Benches.names()));
    }
    BenchReport report = Benches.run(name, SelfCommand.line());
    if (json != null) {
      JsonFile.write(json, report.toJson());
    }
    if (!"-".equals(json)) {
      System.out.print(report.toTable());
    }
    return 0;
  }
}
