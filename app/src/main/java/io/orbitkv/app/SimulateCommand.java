package io.orbitkv.app;

import io.orbitkv.bench.simulator.Simulation;
import io.orbitkv.bench.simulator.SimulationResult;
import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** Runs the Manager's core and many engines in virtual time, with seeded faults. */
@Command(
    name = "simulate",
    description =
        "Runs the Manager's core and many engines in virtual time with seeded faults, looks at the"
            + " rules after each step, and shrinks the schedule of a seed that breaks one. Needs no"
            + " Manager.")
final class SimulateCommand implements Callable<Integer> {
  /** Seeds from one to another. */
  private record Seeds(long first, long last) {
    private static final Pattern RANGE = Pattern.compile("(\\d{1,18})\\.\\.(\\d{1,18})");

    /** Reads what the flag says. */
    static final class Converter implements ITypeConverter<Seeds> {
      @Override
      public Seeds convert(String text) {
        Matcher range = RANGE.matcher(text);
        if (!range.matches()) {
          throw new TypeConversionException("'" + text + "' is no range of seeds, as 1..200");
        }
        return new Seeds(Long.parseLong(range.group(1)), Long.parseLong(range.group(2)));
      }
    }
  }

  @Option(
      names = "--seeds",
      paramLabel = "A..B",
      converter = Seeds.Converter.class,
      description = "Seeds, each a run of its own. Default: 1..200.")
  private Seeds seeds = new Seeds(1, 200);

  @Option(
      names = "--steps",
      paramLabel = "N",
      description = "Steps of each run. Default: " + Simulation.DEFAULT_STEPS + ".")
  private int steps = Simulation.DEFAULT_STEPS;

  @Option(
      names = "--engines",
      paramLabel = "N",
      description = "Engines of each run. Default: " + Simulation.DEFAULT_ENGINES + ".")
  private int engines = Simulation.DEFAULT_ENGINES;

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Write the result as JSON; - is standard output.")
  private JsonFile json;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Simulation simulation = simulation();
    long began = System.nanoTime();
    SimulationResult result = simulation.run();
    long elapsedNs = System.nanoTime() - began;
    if (json != null) {
      json.write(result.toJson(elapsedNs));
    }
    if (json == null || !json.isStandardOutput()) {
      System.out.print(result.toTable(elapsedNs));
    }
    return result.failure() == null ? 0 : Main.FAILED;
  }

  private Simulation simulation() {
    try {
      return new Simulation(seeds.first(), seeds.last(), steps, engines);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), "--" + e.getMessage(), e);
    }
  }
}
