package io.orbitkv.app;

import io.orbitkv.bench.planner.Plan;
import io.orbitkv.bench.planner.PlanPicture;
import io.orbitkv.bench.planner.Planner;
import io.orbitkv.bench.replay.Trace;
import io.orbitkv.bench.replay.TraceException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Shows what caches of different sizes would do for a trace. */
@Command(
    name = "plan",
    description =
        "Plays a trace over many cache sizes, without block bytes and without a Manager, and shows"
            + " the hit ratios of OrbitKV, of other policies and of an offline optimum.")
final class PlanCommand implements Callable<Integer> {
  private static final String DEFAULT_BLOCK_BYTES = "1mb";

  @Parameters(
      paramLabel = "TRACE",
      description = "A file, or mooncake-conversation or mooncake-synthetic.")
  private String trace;

  @Option(
      names = "--block-bytes",
      paramLabel = "SIZE",
      description = "Bytes of a block. Default: " + DEFAULT_BLOCK_BYTES + ".")
  private ByteSize blockBytes = ByteSize.parse(DEFAULT_BLOCK_BYTES);

  @Option(
      names = "--fractions",
      paramLabel = "F",
      split = ",",
      description = "Cache sizes as shares of the trace's distinct blocks, rising.")
  private List<Double> fractions = Planner.DEFAULT_FRACTIONS;

  @Option(
      names = "--limit",
      paramLabel = "N",
      description = "Play the first requests only. Default: all.")
  private int limit = Integer.MAX_VALUE;

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Write the result as JSON; - is standard output.")
  private JsonFile json;

  @Option(names = "--svg", paramLabel = "FILE", description = "Write the curves as SVG.")
  private Path svg;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    check();
    Plan plan = planner().run();
    if (json != null) {
      json.write(plan.toJson());
    }
    PlanPicture picture = new PlanPicture(plan);
    if (svg != null) {
      writeSvg(picture.toSvg());
    }
    if (json == null || !json.isStandardOutput()) {
      System.out.print(plan.toTable() + "\n" + picture.toText());
    }
    return 0;
  }

  private void check() {
    check(blockBytes.bytes() >= 1, "--block-bytes=" + blockBytes.bytes(), "1 and more");
    check(limit >= 1, "--limit=" + limit, "1 and more");
    double before = 0;
    for (double fraction : fractions) {
      check(fraction > 0 && fraction <= 1, "--fractions: " + fraction, "above 0, up to 1");
      check(fraction > before, "--fractions: " + fraction, "rising numbers");
      before = fraction;
    }
  }

  private Planner planner() {
    try {
      return new Planner(Trace.open(trace).limit(limit), fractions, blockBytes.bytes());
    } catch (TraceException | IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  private void check(boolean rule, String value, String allowed) {
    if (!rule) {
      throw new ParameterException(spec.commandLine(), value + ", allowed: " + allowed);
    }
  }

  private void writeSvg(String content) throws IOException {
    try {
      Files.writeString(svg, content);
    } catch (IOException e) {
      throw new IOException(
          "SVG cannot be written: file=" + svg + ", " + e.getClass().getSimpleName(), e);
    }
  }
}
