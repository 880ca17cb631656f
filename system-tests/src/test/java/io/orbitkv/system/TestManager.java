package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.client.AdminClient;
import io.orbitkv.client.OrbitKvException;
import io.orbitkv.testsupport.ProcFs;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A Manager process of its own directory, and what it says it holds. */
final class TestManager implements AutoCloseable {
  static final long POOL_BYTES = 64L << 20;

  private static final Duration BOUND = Duration.ofSeconds(30);

  /** Most time for the end of a Manager that writes what it holds to a slow disk. */
  private static final Duration STOP_BOUND = Duration.ofMinutes(3);

  private static final JsonMapper JSON = new JsonMapper();

  private ManagerProcess process;

  private TestManager(ManagerProcess process) {
    this.process = process;
  }

  static TestManager start() throws IOException {
    return new TestManager(ManagerProcess.start(program(), POOL_BYTES));
  }

  static TestManager start(long poolMiB, String... flags) throws IOException {
    return new TestManager(ManagerProcess.start(program(), poolMiB << 20, flags));
  }

  /** As {@link #start()}, run by another program. */
  static TestManager startBy(List<String> runner) throws IOException {
    List<String> line = new ArrayList<>(runner);
    line.addAll(program());
    return new TestManager(ManagerProcess.start(line, POOL_BYTES));
  }

  /** How to run the command line. */
  static List<String> program() {
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-XX:+UseSerialGC",
        "-Xmx256m",
        "--enable-native-access=ALL-UNNAMED",
        "-cp",
        System.getProperty("java.class.path"),
        "io.orbitkv.app.Main");
  }

  Path socket() {
    return process.socket();
  }

  long pid() {
    return process.pid();
  }

  JsonNode status() {
    return JSON.readTree(AdminClient.status(socket(), BOUND));
  }

  /**
   * Waits until the status fulfils a condition, within a bound; returns it. One that is refused
   * fulfils none: there may be too many connections, those included that have just been closed.
   */
  JsonNode await(String what, Predicate<JsonNode> condition) {
    long deadline = System.nanoTime() + BOUND.toNanos();
    String last;
    do {
      try {
        JsonNode status = status();
        if (condition.test(status)) {
          return status;
        }
        last = "status=" + status;
      } catch (OrbitKvException e) {
        last = "no status: " + e.getMessage();
      }
      LockSupport.parkNanos(5_000_000);
    } while (System.nanoTime() <= deadline);
    throw new AssertionError("waited " + BOUND + " for " + what + ", " + last);
  }

  /**
   * Waits until the Manager has mapped so many memfds, one of its pool and two of each session:
   * those of a session are unmapped after its other accounts are settled.
   */
  void awaitMaps(int count) {
    assertThat(Waits.until(this::maps, maps -> maps.size() == count)).hasSize(count);
  }

  private List<String> maps() {
    try {
      return ProcFs.maps(pid(), "memfd:orbitkv");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Waits until nothing is held for an engine and the pool holds resident blocks only. */
  JsonNode awaitBaseline(int sessions) {
    return await(
        "budgets at their baseline",
        status ->
            status.get("sessions").asInt() == sessions
                && status.get("sessions_retained").asInt() == 0
                && status.get("pin_refs").asLong() == 0
                && status.get("leases").asInt() == 0
                && status.get("grants_active").asInt() == 0
                && status.get("retained_operations").asInt() == 0
                && status.get("pool_used_bytes").asLong() == status.get("resident_bytes").asLong());
  }

  /** Starts another Manager in the place of this one, which has ended. */
  void startAgain() throws IOException {
    process = process.startAgain();
  }

  /** Ends the Manager as SIGTERM does, and waits for its end. */
  void terminate() {
    ProcessHandle handle = ProcessHandle.of(pid()).orElseThrow();
    handle.destroy();
    handle.onExit().orTimeout(STOP_BOUND.toSeconds(), TimeUnit.SECONDS).join();
  }

  /** Ends the Manager as kill -9 does, and waits for its end. */
  void kill() {
    ProcessHandle handle = ProcessHandle.of(pid()).orElseThrow();
    handle.destroyForcibly();
    try {
      handle.onExit().get(BOUND.toSeconds(), TimeUnit.SECONDS);
    } catch (Exception e) {
      throw new AssertionError("Manager did not end within " + BOUND, e);
    }
  }

  boolean answers() {
    try {
      status();
      return true;
    } catch (OrbitKvException e) {
      return false;
    }
  }

  @Override
  public void close() {
    process.close();
  }
}
