package io.orbitkv.bench;

import io.orbitkv.linux.Affinity;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The benchmarks by name. */
public final class Benches {
  /** Name that stands for all benchmarks but those that need a test bed. */
  public static final String ALL = "all";

  private static final String SSD = "ssd";

  private static final Map<String, Bench> BY_NAME =
      new TreeMap<>(
          Map.of(
              "channel",
              new ChannelBench(),
              "copy",
              new CopyBench(),
              "lookup",
              new LookupBench(),
              "policy",
              new PolicyBench(),
              SSD,
              new SsdBench(),
              "start",
              new StartBench(),
              "vllm",
              new VllmBench()));

  private static final Set<String> NEED_TEST_BED = Set.of("vllm");

  private Benches() {}

  /** One benchmark. */
  interface Bench {
    /** Measures all its cases. */
    List<BenchCase> run(BenchContext context) throws IOException;
  }

  /** Names that {@link #run} takes, {@link #ALL} last. */
  public static List<String> names() {
    List<String> names = new ArrayList<>(BY_NAME.keySet());
    names.add(ALL);
    return names;
  }

  /** True when a benchmark can be told which cases to measure and for how long. */
  public static boolean takesScope(String name) {
    return name.equals(SSD);
  }

  /**
   * Runs a benchmark, or all of them.
   *
   * @param command how to run the command line of this program, without arguments
   * @param scope which cases, and for how long, where the benchmark {@link #takesScope}
   * @throws IOException when a process that it needs fails
   */
  public static BenchReport run(String name, List<String> command, BenchScope scope)
      throws IOException {
    boolean quiet = Machine.isQuiet();
    String machine = Machine.describe();
    List<BenchCase> cases = new ArrayList<>();
    List<Integer> cpus = Arrays.stream(Affinity.allowedCpus()).boxed().toList();
    try (Reference reference = new Reference()) {
      BenchContext context = new BenchContext(command, reference, cpus, scope);
      for (Map.Entry<String, Bench> each : BY_NAME.entrySet()) {
        boolean inAll = !NEED_TEST_BED.contains(each.getKey());
        if (name.equals(each.getKey()) || (name.equals(ALL) && inAll)) {
          try {
            cases.addAll(each.getValue().run(context));
          } finally {
            context.unpin();
          }
        }
      }
    }
    return new BenchReport(name, machine, quiet, cases);
  }
}
