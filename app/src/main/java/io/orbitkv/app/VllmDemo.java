package io.orbitkv.app;

import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.bench.ManagerStatus;
import io.orbitkv.bench.TestBed;
import io.orbitkv.bench.VllmEngine;
import io.orbitkv.bench.VllmEngine.Answer;
import io.orbitkv.bench.VllmEngine.Connector;
import io.orbitkv.bench.VllmEngine.Request;
import java.io.IOException;
import java.util.Locale;
import java.util.function.Consumer;

/** A prompt in a real engine, computed, and then restored by an engine that was started again. */
final class VllmDemo {
  private static final int BLOCK_TOKENS = 32;
  private static final Request WARM_UP = new Request(4, 40, 4);
  private static final Request PROMPT = new Request(1, 1500, 24);

  /** Whole blocks of the prompt, but at least one token is left to compute: what is restored. */
  private static final int STEP_TOKENS = (PROMPT.length() - 1) / BLOCK_TOKENS * BLOCK_TOKENS;

  private final Consumer<AutoCloseable> running;

  /**
   * Makes one.
   *
   * @param running takes what ends a child, as soon as it runs, for when the demo is interrupted
   */
  VllmDemo(Consumer<AutoCloseable> running) {
    this.running = running;
  }

  /** Plays it and prints what came of it; the exit code. */
  int play(ManagerProcess manager) throws IOException {
    TestBed bed = TestBed.setUp();
    Connector connector = Connector.orbitKv("orbitkv.vllm", manager.socket());
    Answer cold = run(bed, connector, "first engine: computes the prompt");
    Answer restored = run(bed, connector, "second engine: finds the prompt's blocks");
    print("%n%-28s %12s %14s %10s%n", "", "first token", "cached tokens", "seconds");
    printRow("cold", cold);
    printRow("after the engine's restart", restored);
    boolean equal = cold.tokens().equals(restored.tokens());
    print("%n%-28s %s%n", "tokens of both answers", equal ? "equal" : "DIFFERENT");
    print("%-28s %s%n", "answer", restored.text().strip());
    ManagerStatus status = ManagerStatus.read(manager.socket());
    print(
        "%-28s %d of %d blocks looked up were hits, %s restored%n",
        "Manager",
        status.number("hit_blocks_total"),
        status.number("lookup_blocks_total"),
        ByteSize.format(status.number("restored_bytes_total")));
    return equal && restored.cachedTokens() > 0 ? 0 : Main.FAILED;
  }

  private Answer run(TestBed bed, Connector connector, String what) throws IOException {
    System.err.println("starting vLLM (some seconds), " + what);
    try (VllmEngine engine = VllmEngine.start(bed, connector, BLOCK_TOKENS, STEP_TOKENS, running)) {
      engine.ask(WARM_UP);
      return engine.ask(PROMPT);
    }
  }

  private static void printRow(String name, Answer answer) {
    print(
        "%-28s %9.0f ms %14s %10.2f%n",
        name,
        answer.firstTokenMs(),
        answer.cachedTokens() + " of " + PROMPT.length(),
        answer.seconds());
  }

  @SuppressWarnings("AnnotateFormatMethod") // the annotation would be one more dependency
  private static void print(String format, Object... values) {
    System.out.printf(Locale.ROOT, format, values);
  }
}
