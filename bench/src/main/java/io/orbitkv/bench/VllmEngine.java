package io.orbitkv.bench;

import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * A vLLM engine as a child process, driven by {@code python/testbed/engine.py}. It ends with its
 * owner, since its commands come through a pipe. Not thread-safe.
 */
public final class VllmEngine implements AutoCloseable {
  private static final JsonMapper JSON = new JsonMapper();
  private static final Duration STOP_BOUND = Duration.ofSeconds(30);
  private static final int LAST_LINES = 15;

  /** An engine without a connector must not read the caller's options. */
  private static final List<String> FOREIGN = List.of("ORBITKV_", "VLLM_", "PYTHON");

  private final Process process;
  private final Path log;
  private final BufferedReader answers;
  private final BufferedWriter commands;

  /**
   * One answer.
   *
   * @param firstTokenMs milliseconds from the request to its first token
   * @param seconds seconds of the whole request
   * @param hookShare part of the time after the first token that was spent in hooks of a connector
   *     that counts it
   * @param cachedTokens prompt tokens that were not computed
   * @param tokens tokens of the answer
   * @param text the same as text
   */
  public record Answer(
      double firstTokenMs,
      double seconds,
      double hookShare,
      int cachedTokens,
      List<Integer> tokens,
      String text) {}

  /**
   * A connector.
   *
   * @param name name of its class
   * @param module module of the class
   * @param options its options
   */
  public record Connector(String name, String module, Map<String, String> options) {
    /** Ours. */
    public static Connector orbitKv(String module, Path socket) {
      return new Connector(
          "OrbitKVConnector", module, Map.of("orbitkv.bootstrap_socket", socket.toString()));
    }
  }

  /**
   * A request: the first tokens of a story.
   *
   * @param story number of the story
   * @param length tokens of the prompt
   * @param maxTokens tokens of the answer
   */
  public record Request(int story, int length, int maxTokens) {}

  private VllmEngine(Process process, Path log) {
    this.process = process;
    this.log = log;
    this.answers = process.inputReader(StandardCharsets.UTF_8);
    this.commands = process.outputWriter(StandardCharsets.UTF_8);
  }

  /**
   * Starts an engine and waits until it takes requests.
   *
   * @param connector null for none
   * @param blockTokens tokens of a block
   * @param stepTokens tokens that a step computes at most, so that an answer to a prompt whose
   *     begin was restored, up to a multiple of it, is exactly the one to a prompt that was
   *     computed whole; 0 for what the engine does by itself
   * @param running takes what ends the child at once, as soon as it runs; idempotent
   * @throws IOException when it ends early, with its last words
   */
  public static VllmEngine start(
      TestBed bed,
      Connector connector,
      int blockTokens,
      int stepTokens,
      Consumer<AutoCloseable> running)
      throws IOException {
    ObjectNode settings = JSON.createObjectNode().put("model", bed.model().toString());
    settings.put("step_tokens", stepTokens);
    settings.putObject("llm").put("block_size", blockTokens);
    if (connector != null) {
      ObjectNode node = settings.putObject("connector");
      node.put("name", connector.name()).put("module", connector.module());
      ObjectNode options = node.putObject("options");
      connector.options().forEach(options::put);
    }
    Path log = Files.createTempFile("orbitkv-engine-", ".log");
    ProcessBuilder builder =
        new ProcessBuilder(
            bed.python().toString(),
            bed.sources().resolve("engine.py").toString(),
            settings.toString());
    environment(builder.environment(), bed);
    VllmEngine engine = null;
    try {
      engine = new VllmEngine(builder.redirectError(log.toFile()).start(), log);
      running.accept(engine::kill);
      engine.answer();
      return engine;
    } catch (IOException | RuntimeException e) {
      if (engine != null) {
        engine.process.destroyForcibly();
      }
      Files.deleteIfExists(log);
      throw e;
    }
  }

  /**
   * One thread, since results of other thread counts differ and the threads of the engine would
   * fight with its own waiting; one process, so that both halves of a connector can be watched.
   */
  private static void environment(Map<String, String> environment, TestBed bed) {
    environment.keySet().removeIf(name -> FOREIGN.stream().anyMatch(name::startsWith));
    environment.putAll(
        Map.of(
            "HF_HUB_OFFLINE", "1",
            "OMP_NUM_THREADS", "1",
            "ORBITKV_JARS", bed.jars(),
            "PYTHONPATH", bed.pythonPath(),
            "TRANSFORMERS_OFFLINE", "1",
            "VLLM_CPU_KVCACHE_SPACE", "1",
            "VLLM_CPU_OMP_THREADS_BIND", "nobind",
            "VLLM_ENABLE_V1_MULTIPROCESSING", "0",
            "VLLM_NO_USAGE_STATS", "1"));
  }

  /** Answers one request and times it. */
  public Answer ask(Request request) throws IOException {
    ObjectNode command = JSON.createObjectNode().put("do", "time");
    command
        .putObject("request")
        .put("story", request.story())
        .put("length", request.length())
        .put("max_tokens", request.maxTokens());
    JsonNode answer = call(command);
    JsonNode output = answer.path("output");
    return new Answer(
        answer.path("first_token_seconds").doubleValue() * 1e3,
        answer.path("seconds").doubleValue(),
        answer.path("hook_share").doubleValue(),
        output.path("cached").intValue(),
        output.path("tokens").valueStream().map(JsonNode::intValue).toList(),
        output.path("text").stringValue(""));
  }

  /** Empties the engine's own prefix cache. */
  public void forget() throws IOException {
    JsonNode answer = call(JSON.createObjectNode().put("do", "reset"));
    if (!answer.path("ok").booleanValue()) {
      throw new IOException("the engine did not empty its prefix cache");
    }
  }

  private JsonNode call(ObjectNode command) throws IOException {
    commands.write(command.toString());
    commands.newLine();
    commands.flush();
    return answer();
  }

  private JsonNode answer() throws IOException {
    String line = answers.readLine();
    if (line == null) {
      throw new IOException("the engine ended; its last words: " + lastWords());
    }
    JsonNode answer = JSON.readTree(line);
    if (answer.has("error")) {
      throw new IOException("the engine failed: " + answer.path("error").stringValue(""));
    }
    return answer;
  }

  private String lastWords() throws IOException {
    if (Files.notExists(log)) {
      return "none, it was told to end";
    }
    List<String> lines = Files.readAllLines(log);
    return String.join(" | ", lines.subList(Math.max(0, lines.size() - LAST_LINES), lines.size()));
  }

  /** Ends the engine in order, waits for its end and deletes its log; idempotent. */
  @Override
  public void close() {
    try {
      commands.close();
      if (!process.waitFor(STOP_BOUND.toSeconds(), SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    } catch (IOException e) {
      process.destroyForcibly();
    }
    deleteLog();
  }

  private void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
    deleteLog();
  }

  private void deleteLog() {
    File file = log.toFile();
    if (!file.delete() && file.exists()) {
      file.deleteOnExit();
    }
  }
}
