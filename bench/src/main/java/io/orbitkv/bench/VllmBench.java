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
import java.util.stream.Stream;

/**
 * Time to the first token of a real engine: computed, from the engine's own prefix cache, restored
 * from OrbitKV by an engine that has just started, and restored by a naive connector with files in
 * {@code /dev/shm}. Each round starts one engine with either connector in turn.
 */
final class VllmBench implements Benches.Bench {
  private static final int PROMPT_TOKENS = 1500;
  private static final int ROUNDS = 3;
  private static final List<Integer> BLOCK_TOKENS = List.of(32, 128);
  private static final long POOL_BYTES = 1L << 30;
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
        if (round % 2 == 0) {
          restoreNaive(engines, naive, prompt, figures);
        }
        restoreOurs(engines, ours, prompt, figures, 10 + round);
        if (round % 2 != 0) {
          restoreNaive(engines, naive, prompt, figures);
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
      return VllmEngine.start(bed, connector, blockTokens, false, leftovers::add);
    }
  }

  /** Computes the prompt in an engine that ends, so that others find its blocks. */
  private static void fill(Engines engines, Connector connector, Request prompt)
      throws IOException {
    try (VllmEngine engine = engines.start(connector)) {
      engine.ask(prompt);
    }
  }

  private static void restoreOurs(
      Engines engines, Connector ours, Request prompt, Figures figures, int newStory)
      throws IOException {
    try (VllmEngine engine = engines.start(ours)) {
      engine.ask(WARM_UP);
      figures.restored.add(restored(engine, prompt));
      figures.hit.add(engine.ask(prompt).firstTokenMs());
      engine.forget();
      figures.restoredAgain.add(restored(engine, prompt));
      figures.hookPercent.add(hookPercent(engine));
      figures.cold.add(engine.ask(new Request(newStory, PROMPT_TOKENS, 1)).firstTokenMs());
    }
  }

  private static void restoreNaive(
      Engines engines, Connector naive, Request prompt, Figures figures) throws IOException {
    try (VllmEngine engine = engines.start(naive)) {
      engine.ask(WARM_UP);
      figures.naive.add(restored(engine, prompt));
    }
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
    double restored = median(figures.restored);
    double hit = median(figures.hit);
    String name = ", block " + blockTokens;
    return List.of(
        ttft("cold" + name, median(figures.cold), hit, "hit in the engine's own prefix cache"),
        ttft("restored" + name, restored, hit, "hit in the engine's own prefix cache"),
        ttft(
            "restored against its bound" + name,
            restored,
            ALLOWED_FACTOR * hit + ALLOWED_MS,
            "1.2 x the hit + 10 ms"),
        ttft("restored" + name, restored, median(figures.naive), "naive, files in /dev/shm"),
        ttft(
            "restored again by the same engine" + name,
            median(figures.restoredAgain),
            hit,
            "hit in the engine's own prefix cache"),
        new BenchCase(
            "hooks while nothing is stored or loaded" + name,
            "% of step",
            median(figures.hookPercent),
            ALLOWED_HOOK_PERCENT,
            "bound",
            LOWER,
            ROUNDS));
  }

  private static BenchCase ttft(String name, double ours, double reference, String referenceName) {
    return new BenchCase(
        "first token, " + name, "ms", ours, reference, referenceName, LOWER, ROUNDS);
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
