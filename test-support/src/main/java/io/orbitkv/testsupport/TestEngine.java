package io.orbitkv.testsupport;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** An {@link EngineMain} in a process of its own. Belongs to one thread. */
public final class TestEngine implements AutoCloseable {
  private static final long BOUND_SECONDS = 60;
  private static final Duration CALL_BOUND = Duration.ofSeconds(5);

  /** No test waits for it: an engine that connects again sees the end of its Manager at once. */
  private static final Duration RECONNECTING_CALL_BOUND = Duration.ofSeconds(30);

  private final Process process;
  private final PrintWriter in;
  private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

  private TestEngine(Process process) {
    this.process = process;
    this.in = new PrintWriter(process.getOutputStream(), true, StandardCharsets.UTF_8);
    Thread reader = new Thread(this::readLines, "test-engine-output");
    reader.setDaemon(true);
    reader.start();
  }

  /** Starts an engine of the instance and waits until it has registered. */
  public static TestEngine start(Path socket, String instance) throws IOException {
    return start(socket, instance, false, EngineMain.BLOCK_BYTES, EngineMain.PAGES, CALL_BOUND);
  }

  /** As {@link #start(Path, String)}, with another bound of its calls. */
  public static TestEngine start(Path socket, String instance, Duration callBound)
      throws IOException {
    return start(socket, instance, false, EngineMain.BLOCK_BYTES, EngineMain.PAGES, callBound);
  }

  /** Starts an engine that goes on without a Manager, and waits until it takes commands. */
  public static TestEngine startReconnecting(Path socket, String instance) throws IOException {
    return start(
        socket, instance, true, EngineMain.BLOCK_BYTES, EngineMain.PAGES, RECONNECTING_CALL_BOUND);
  }

  /** Starts an engine with 70,000 pages of 512 bytes, and waits until it has registered. */
  public static TestEngine startWithManyPages(Path socket, String instance) throws IOException {
    return start(
        socket, instance, false, EngineMain.SMALL_BLOCK_BYTES, EngineMain.MANY_PAGES, CALL_BOUND);
  }

  private static TestEngine start(
      Path socket,
      String instance,
      boolean reconnects,
      int blockBytes,
      int pages,
      Duration callBound)
      throws IOException {
    return start(List.of(), program(socket, instance, reconnects, blockBytes, pages, callBound));
  }

  /** As {@link #start(Path, String)}, run by another program. */
  public static TestEngine startBy(List<String> runner, Path socket, String instance)
      throws IOException {
    return start(
        runner,
        program(socket, instance, false, EngineMain.BLOCK_BYTES, EngineMain.PAGES, CALL_BOUND));
  }

  private static List<String> program(
      Path socket,
      String instance,
      boolean reconnects,
      int blockBytes,
      int pages,
      Duration callBound) {
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-XX:+UseSerialGC",
        "-Xmx256m",
        "--enable-native-access=ALL-UNNAMED",
        "-Dorbitkv.pausePoints=true",
        "-cp",
        System.getProperty("java.class.path"),
        EngineMain.class.getName(),
        socket.toString(),
        instance,
        Boolean.toString(reconnects),
        Integer.toString(blockBytes),
        Integer.toString(pages),
        Long.toString(callBound.toMillis()));
  }

  private static TestEngine start(List<String> runner, List<String> program) throws IOException {
    List<String> line = new ArrayList<>(runner);
    line.addAll(program);
    Process process =
        new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    TestEngine engine = new TestEngine(process);
    engine.expect("ready");
    return engine;
  }

  private void readLines() {
    try (BufferedReader out =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = out.readLine(); line != null; line = out.readLine()) {
        lines.add(line);
      }
      lines.add("ended");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Sends a command and returns its answer. */
  public String ask(String command) {
    in.println(command);
    return next();
  }

  /** Asks for the state until it begins with the words given, within a bound; returns it. */
  public String awaitState(String beginning) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(BOUND_SECONDS);
    String state = ask("state");
    while (!state.startsWith(beginning)) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("engine says \"" + state + "\", waited for \"" + beginning + "\"");
      }
      LockSupport.parkNanos(5_000_000);
      state = ask("state");
    }
    return state;
  }

  /** The next line that the engine says. */
  public String next() {
    try {
      String line = lines.poll(BOUND_SECONDS, TimeUnit.SECONDS);
      if (line == null) {
        throw new AssertionError("engine said nothing for " + BOUND_SECONDS + " s");
      }
      return line;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted", e);
    }
  }

  /** Waits for a line. */
  public void expect(String line) {
    String found = next();
    if (!found.equals(line)) {
      throw new AssertionError("engine said \"" + found + "\", expected \"" + line + "\"");
    }
  }

  /** Begins a command that is held at a pause point; returns once it is there. */
  public void holdAt(String point, String command) {
    String armed = ask("pause " + point);
    in.println("background " + command);
    List<String> said = List.of(armed, next(), next());
    boolean held =
        said.contains("armed") && said.contains("started") && said.contains("paused " + point);
    if (!held) {
      throw new AssertionError("engine said " + said + ", expected to be held at " + point);
    }
  }

  /** Lets the held command go on and returns its answer. */
  public String finishHeld() {
    ask("resume");
    return ask("result");
  }

  /** Sends a command whose answer {@link #next} returns. */
  public void tell(String command) {
    in.println(command);
  }

  /** Process id. */
  public long pid() {
    return process.pid();
  }

  /** True while the process lives. */
  public boolean isAlive() {
    return process.isAlive();
  }

  /** Ends the process as kill -9 does, and waits for its end. */
  public void kill() {
    process.destroyForcibly();
    await();
  }

  private void await() {
    try {
      if (!process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("engine did not end within " + BOUND_SECONDS + " s");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted", e);
    }
  }

  /** Lets the engine close its session and end. */
  public void stop() {
    in.close();
    await();
  }

  @Override
  public void close() {
    process.destroyForcibly();
    await();
  }
}
