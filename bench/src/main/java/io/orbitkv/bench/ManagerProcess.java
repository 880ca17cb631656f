package io.orbitkv.bench;

import static java.util.concurrent.TimeUnit.SECONDS;

import io.orbitkv.linux.CpuClock;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/**
 * A Manager as a child process, in a private directory and on a free HTTP port. It ends with its
 * owner, however that ends: it stops when its standard input does. Thread-safe.
 */
public final class ManagerProcess implements AutoCloseable {
  /** First word of the line that a Manager prints once it is ready. */
  public static final String READY = "ready";

  private static final Duration READY_BOUND = Duration.ofMinutes(2);
  private static final Duration STOP_BOUND = Duration.ofSeconds(30);

  private final Path directory;
  private final List<String> line;
  private final Process process;
  private final Duration startTime;

  private ManagerProcess(Path directory, List<String> line) throws IOException {
    this.directory = directory;
    this.line = line;
    long start = System.nanoTime();
    ProcessBuilder builder =
        new ProcessBuilder(line)
            .directory(directory.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().keySet().removeIf(name -> name.startsWith("ORBITKV_"));
    process = builder.start();
    try {
      awaitReady(process);
    } catch (IOException | RuntimeException e) {
      process.destroyForcibly().onExit().orTimeout(STOP_BOUND.toSeconds(), SECONDS).join();
      throw e;
    }
    startTime = Duration.ofNanos(System.nanoTime() - start);
  }

  /**
   * Starts a Manager and waits until it is ready.
   *
   * @param command how to run the command line of this program, without arguments
   * @param poolBytes size of the pool
   * @param flags further flags of the manager command
   * @throws IOException when it cannot be started or ends early; its own words are on standard
   *     error
   */
  public static ManagerProcess start(List<String> command, long poolBytes, String... flags)
      throws IOException {
    Path directory = Files.createTempDirectory("orbitkv-");
    List<String> line = new ArrayList<>(command);
    line.addAll(List.of("manager", "--pool-size", Long.toString(poolBytes)));
    line.addAll(List.of("--socket", socket(directory).toString(), "--http-addr", "127.0.0.1:0"));
    line.addAll(List.of("--log-level", "warn", "--stop-with-stdin"));
    line.addAll(List.of(flags));
    try {
      return new ManagerProcess(directory, line);
    } catch (IOException | RuntimeException e) {
      delete(directory);
      throw e;
    }
  }

  /**
   * Waits for the end of this Manager, and starts another one in its place: same directory, socket
   * and flags. This object is of no further use.
   *
   * @throws IOException when this one does not end, or as {@link #start}
   */
  public ManagerProcess startAgain() throws IOException {
    try {
      if (!process.waitFor(STOP_BOUND.toSeconds(), SECONDS)) {
        throw new IOException("the Manager has not ended within " + STOP_BOUND);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while the Manager ended", e);
    }
    return new ManagerProcess(directory, line);
  }

  private static void awaitReady(Process process) throws IOException {
    CompletableFuture<Boolean> ready = new CompletableFuture<>();
    Thread reader = new Thread(() -> readOutput(process, ready), "orbitkv-manager-output");
    reader.setDaemon(true);
    reader.start();
    try {
      if (!ready.get(READY_BOUND.toSeconds(), SECONDS)) {
        throw new IOException("the Manager ended before it was ready");
      }
    } catch (TimeoutException e) {
      throw new IOException("the Manager was not ready within " + READY_BOUND, e);
    } catch (ExecutionException e) {
      throw new IOException("the Manager's output could not be read", e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while the Manager started", e);
    }
  }

  /** Reads to the end, so that the Manager never waits for a reader. */
  private static void readOutput(Process process, CompletableFuture<Boolean> ready) {
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.startsWith(READY + " ")) {
          ready.complete(true);
        }
      }
      ready.complete(false);
    } catch (IOException e) {
      ready.completeExceptionally(e);
    }
  }

  /** Socket of the Manager. */
  public Path socket() {
    return socket(directory);
  }

  private static Path socket(Path directory) {
    return directory.resolve("manager.sock");
  }

  /** Process id of the Manager. */
  public long pid() {
    return process.pid();
  }

  /** Time from the start of the process to its ready line. */
  public Duration startTime() {
    return startTime;
  }

  /** Processor seconds that the Manager has used. */
  public double cpuSeconds() throws IOException {
    return CpuClock.cpuSeconds(Math.toIntExact(process.pid()));
  }

  /** Stops the Manager, waits for its end and deletes its directory; idempotent. */
  @Override
  public void close() {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(STOP_BOUND.toSeconds(), SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    } catch (IOException e) {
      process.destroyForcibly();
    }
    try {
      delete(directory);
    } catch (IOException e) {
      throw new UncheckedIOException("directory cannot be deleted: " + directory, e);
    }
  }

  private static void delete(Path directory) throws IOException {
    if (!Files.exists(directory)) {
      return;
    }
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(directory);
  }
}
