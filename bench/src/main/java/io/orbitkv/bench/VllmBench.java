package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.bench.VllmEngine.Answer;
import io.orbitkv.bench.VllmEngine.Connector;
import io.orbitkv.bench.VllmEngine.Request;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Time to the first token of a real engine: computed, from the engine's own prefix cache, restored
 * from OrbitKV by an engine that has just started, and restored by a naive connector with files in
 * {@code /dev/shm}. Each round starts an engine with either connector and asks one right after the
 * other, in alternating order: what disturbs the machine for some seconds meets both. A comparison
 * is the median of the rounds' ratios.
 */
final class VllmBench implements Benches.Bench {
  private static final int PROMPT_TOKENS = 1500;
  private static final int ROUNDS = 5;
  private static final List<Integer> BLOCK_TOKENS = List.of(32, 128);
  private static final long POOL_BYTES = 1L << 30;
  private static final String HIT = "hit in the engine's own prefix cache";
  private static final double ALLOWED_FACTOR = 1.2;
  private static final double ALLOWED_MS = 10;
  private static final double ALLOWED_HOOK_PERCENT = 1;
  private static final double ALLOWED_MIB = 80;

  /** Its answer ends within the block after the prompt: no block is filled after the first step. */
  private static final Request STEADY = new Request(3, 130, 29);

  private static final Request WARM_UP = new Request(4, 40, 4);

  /** Figures of one block size, one of each a round. */
  private static final class Figures {
    final List<Double> cold = new ArrayList<>();
    final List<Double> restored = new ArrayList<>();
    final List<Double> restoredAgain = new ArrayList<>();
    final List<Double> hit = new ArrayList<>();
    final List<Double> naive = new ArrayList<>();
    final List<Double> hookPercent = new ArrayList<>();
  }

  @Override
  public List<BenchCase> run(BenchContext context) throws IOException {
    TestBed bed = TestBed.setUp();
    List<BenchCase> cases = new ArrayList<>();
    for (int blockTokens : BLOCK_TOKENS) {
      cases.addAll(measure(context, bed, blockTokens));
    }
    cases.add(memory(context, bed));
    return cases;
  }

  private static List<BenchCase> measure(BenchContext context, TestBed bed, int blockTokens)
      throws IOException {
    try (Leftovers leftovers = Leftovers.open()) {
      Path files = leftovers.make(NaiveFiles::make).folder();
      ManagerProcess manager =
          leftovers.make(() -> ManagerProcess.start(context.command(), POOL_BYTES));
      Connector ours = Connector.orbitKv("timed", manager.socket());
      Connector naive =
          new Connector("NaiveConnector", "naive", Map.of("folder", files.toString()));
      Engines engines = new Engines(bed, blockTokens, leftovers);
      Figures figures = new Figures();
      Request prompt = new Request(1, PROMPT_TOKENS, 1);
      fill(engines, ours, prompt);
      fill(engines, naive, prompt);
      for (int round = 0; round < ROUNDS; round++) {
        try (VllmEngine other = engines.start(naive);
            VllmEngine our = engines.start(ours)) { // last: it has just started
          measure(our, other, prompt, round, figures);
        }
      }
      return cases(figures, blockTokens);
    }
  }

  /** Folder of the naive connector, in memory. */
  private record NaiveFiles(Path folder) implements AutoCloseable {
    static NaiveFiles make() throws IOException {
      return new NaiveFiles(Files.createTempDirectory(Path.of("/dev/shm"), "orbitkv-naive-"));
    }

    @Override
    public void close() throws IOException {
      try (Stream<Path> files = Files.list(folder)) {
        for (Path file : files.toList()) {
          Files.delete(file);
        }
      }
      Files.delete(folder);
    }
  }

  /** Starts engines of one block size. */
  private record Engines(TestBed bed, int blockTokens, Leftovers leftovers) {
    VllmEngine start(Connector connector) throws IOException {
      return VllmEngine.start(bed, connector, blockTokens, 0, leftovers::add);
    }
  }

  /** Computes the prompt in an engine that ends, so that others find its blocks. */
  private static void fill(Engines engines, Connector connector, Request prompt)
      throws IOException {
    try (VllmEngine engine = engines.start(connector)) {
      engine.ask(prompt);
    }
  }

  private static void measure(
      VllmEngine our, VllmEngine naive, Request prompt, int round, Figures figures)
      throws IOException {
    our.ask(WARM_UP);
    naive.ask(WARM_UP);
    if (round % 2 == 0) {
      figures.naive.add(restored(naive, prompt));
    }
    figures.restored.add(restored(our, prompt));
    figures.hit.add(our.ask(prompt).firstTokenMs());
    if (round % 2 != 0) {
      figures.naive.add(restored(naive, prompt));
    }
    our.forget();
    figures.restoredAgain.add(restored(our, prompt));
    figures.hookPercent.add(hookPercent(our));
    figures.cold.add(our.ask(new Request(10 + round, PROMPT_TOKENS, 1)).firstTokenMs());
  }

  private static double restored(VllmEngine engine, Request prompt) throws IOException {
    Answer answer = engine.ask(prompt);
    if (answer.cachedTokens() == 0) {
      throw new IOException("the engine restored nothing");
    }
    return answer.firstTokenMs();
  }

  /** Share of the time of steps that only compute which the hooks take. */
  private static double hookPercent(VllmEngine engine) throws IOException {
    engine.ask(STEADY);
    return engine.ask(STEADY).hookShare() * 100;
  }

  private static List<BenchCase> cases(Figures figures, int blockTokens) {
    String name = ", block " + blockTokens;
    List<Double> bounds =
        figures.hit.stream().map(hit -> ALLOWED_FACTOR * hit + ALLOWED_MS).toList();
    return List.of(
        ttft("cold" + name, figures.cold, figures.hit, HIT),
        ttft("restored" + name, figures.restored, figures.hit, HIT),
        ttft(
            "restored against its bound" + name, figures.restored, bounds, "1.2 x the hit + 10 ms"),
        ttft("restored" + name, figures.restored, figures.naive, "naive, files in /dev/shm"),
        ttft("restored again by the same engine" + name, figures.restoredAgain, figures.hit, HIT),
        new BenchCase(
            "hooks while nothing is stored or loaded" + name,
            "% of step",
            median(figures.hookPercent),
            ALLOWED_HOOK_PERCENT,
            "bound",
            LOWER,
            ROUNDS));
  }

  /** Our median, and the reference that stands to it as in the median round. */
  private static BenchCase ttft(
      String name, List<Double> ours, List<Double> references, String referenceName) {
    List<Double> ratios =
        IntStream.range(0, ours.size())
            .mapToObj(i -> Double.valueOf(ours.get(i) / references.get(i)))
            .toList();
    double median = median(ours);
    return new BenchCase(
        "first token, " + name,
        "ms",
        median,
        median / median(ratios),
        referenceName,
        LOWER,
        ROUNDS);
  }

  /** Private memory that two clients add to a process. */
  private static BenchCase memory(BenchContext context, TestBed bed) throws IOException {
    try (Leftovers leftovers = Leftovers.open()) {
      ManagerProcess manager =
          leftovers.make(() -> ManagerProcess.start(context.command(), POOL_BYTES));
      ProcessBuilder builder =
          new ProcessBuilder(
              bed.python().toString(),
              bed.sources().resolve("memory.py").toString(),
              manager.socket().toString());
      builder.environment().put("PYTHONPATH", bed.pythonPath());
      builder.environment().put("ORBITKV_JARS", bed.jars());
      Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
      String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (said.isBlank()) {
        throw new IOException("the client's memory could not be measured, see above");
      }
      double mib = Long.parseLong(said.strip()) / 1024.0;
      return new BenchCase(
          "private memory that the client adds", "MiB", mib, ALLOWED_MIB, "bound", LOWER, 1);
    }
  }

  private static double median(List<Double> values) {
    return Rounds.median(values.stream().mapToDouble(Double::doubleValue).toArray());
  }
}
