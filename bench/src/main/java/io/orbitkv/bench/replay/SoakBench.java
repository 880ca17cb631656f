package io.orbitkv.bench.replay;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import io.orbitkv.bench.BenchCase;
import io.orbitkv.bench.BenchReport;
import io.orbitkv.bench.Machine;
import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.bench.ManagerStatus;
import io.orbitkv.channel.Protocol;
import io.orbitkv.client.AdminClient;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.ToDoubleFunction;

/**
 * Load for a long time on every session that there is, to see that nothing grows: what Manager and
 * engine process use in the last third of the time is at most what they used in the first, and a
 * small allowance, once they have run in.
 */
public final class SoakBench {
  /** Its name on the command line. */
  public static final String NAME = "soak";

  /** Length when none is chosen. */
  public static final int DEFAULT_SECONDS = 600;

  /** Shortest run: a third has several samples. */
  public static final int LEAST_SECONDS = 10;

  /** Longest run: a day. */
  public static final int MOST_SECONDS = 86_400;

  private static final long POOL_BYTES = 256L << 20;
  private static final int THREADS = 4;
  private static final String TRACE = "mooncake-conversation";
  private static final int SAMPLES = 60;
  private static final int RUN_IN_SHARE = 4;
  private static final Duration SETTLE = Duration.ofSeconds(30);
  private static final long JOIN_MS = 60_000;

  /** Longer than usual: under this load on a busy machine a late answer is no fault. */
  private static final Duration CALL_BOUND = Duration.ofSeconds(60);

  private final List<SoakPlayer> players = new ArrayList<>();
  private final List<Sample> samples = new ArrayList<>();
  private volatile boolean ended;
  private volatile Throwable failure;

  private SoakBench() {}

  /** Both processes at one moment. */
  private record Sample(ProcessFootprint manager, ProcessFootprint engines, double retained) {}

  /**
   * Runs.
   *
   * @param command how to run the command line of this program, without arguments
   * @throws IOException when a process or a call fails
   */
  public static BenchReport run(List<String> command, int seconds) throws IOException {
    boolean quiet = Machine.isQuiet();
    return new SoakBench().run(command, seconds, quiet);
  }

  private BenchReport run(List<String> command, int seconds, boolean quiet) throws IOException {
    Trace trace = Trace.open(TRACE);
    List<BenchCase> cases = new ArrayList<>();
    try (ManagerProcess manager = ManagerProcess.start(command, POOL_BYTES)) {
      try {
        for (int i = 0; i < THREADS; i++) {
          int sessions = Protocol.MAX_SESSIONS / THREADS;
          players.add(
              new SoakPlayer(trace, manager.socket(), "soak-" + i, sessions, i, CALL_BOUND));
        }
        play(manager, seconds);
      } finally {
        players.forEach(SoakPlayer::close);
      }
      cases.addAll(growth());
      cases.addAll(totals(manager));
    }
    String name = NAME + " " + seconds + " s, " + Protocol.MAX_SESSIONS + " sessions";
    return new BenchReport(name, Machine.describe(), quiet, cases, 1.0);
  }

  private void play(ManagerProcess manager, int seconds) throws IOException {
    List<Thread> threads = new ArrayList<>();
    for (SoakPlayer player : players) {
      threads.add(Thread.ofPlatform().daemon().name("soak").start(() -> play(player)));
    }
    try {
      long began = System.nanoTime();
      long lengthNs = seconds * 1_000_000_000L;
      while (failure == null && System.nanoTime() - began < lengthNs) {
        long next = (System.nanoTime() - began) * SAMPLES / lengthNs + 1; // a late one is left out
        parkUntil(began + lengthNs / SAMPLES * next);
        samples.add(sample(manager));
      }
    } finally {
      ended = true;
      threads.forEach(SoakBench::join);
    }
    if (failure != null) {
      throw new IOException("soak: " + failure.getMessage(), failure);
    }
  }

  private void play(SoakPlayer player) {
    try {
      while (!ended) {
        player.step();
      }
    } catch (Throwable t) { // ends the run, which reports it
      failure = t;
    }
  }

  private static void parkUntil(long timeNs) {
    for (long left = timeNs - System.nanoTime(); left > 0; left = timeNs - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join(JOIN_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static Sample sample(ManagerProcess manager) throws IOException {
    ManagerStatus status = ManagerStatus.parse(AdminClient.status(manager.socket(), CALL_BOUND));
    return new Sample(
        ProcessFootprint.of(manager.pid()),
        ProcessFootprint.of(ProcessHandle.current().pid()),
        status.number("retained_operations") + status.number("sessions_retained"));
  }

  private List<BenchCase> growth() {
    List<BenchCase> cases = new ArrayList<>();
    for (boolean manager : new boolean[] {true, false}) {
      String who = manager ? "Manager " : "engines ";
      cases.add(grown(who + "heap", "KiB", part(manager, ProcessFootprint::heapKib), 1.05, 2048));
      cases.add(
          grown(
              who + "private memory",
              "KiB",
              part(manager, ProcessFootprint::anonymousKib),
              1.03,
              8192));
      cases.add(
          grown(
              who + "shared memory",
              "KiB",
              part(manager, ProcessFootprint::sharedKib),
              1.01,
              1024));
      cases.add(grown(who + "open files", "files", part(manager, ProcessFootprint::files), 1, 8));
    }
    cases.add(grown("retained", "things", Sample::retained, 1, 0));
    return cases;
  }

  private static ToDoubleFunction<Sample> part(
      boolean manager, ToDoubleFunction<ProcessFootprint> figure) {
    return sample -> figure.applyAsDouble(manager ? sample.manager() : sample.engines());
  }

  private BenchCase grown(
      String name, String unit, ToDoubleFunction<Sample> figure, double factor, double more) {
    int from = samples.size() / RUN_IN_SHARE;
    int third = (samples.size() - from) / 3;
    double first = median(samples.subList(from, from + third), figure);
    double last = median(samples.subList(samples.size() - third, samples.size()), figure);
    return new BenchCase(
        name + ", last third",
        unit,
        last,
        first * factor + more,
        "first third %.0f, x %.2f, + %.0f".formatted(first, factor, more),
        LOWER,
        third);
  }

  private static double median(List<Sample> part, ToDoubleFunction<Sample> figure) {
    return part.stream()
        .mapToDouble(figure)
        .sorted()
        .skip(part.size() / 2)
        .findFirst()
        .orElse(Double.NaN);
  }

  private List<BenchCase> totals(ManagerProcess manager) {
    long wrong = players.stream().mapToLong(SoakPlayer::wrongBytes).sum();
    long verified = players.stream().mapToLong(SoakPlayer::verifiedBytes).sum();
    long played = players.stream().mapToLong(SoakPlayer::played).sum();
    List<String> leaks = ManagerStatus.awaitSettled(manager.socket(), SETTLE).leaks();
    return List.of(
        new BenchCase(
            "wrong bytes",
            "bytes",
            wrong,
            0.0,
            "of %,d verified in %,d requests".formatted(verified, played),
            LOWER,
            1),
        new BenchCase(
            "gauges not back at 0 in the end",
            "gauges",
            leaks.size(),
            0.0,
            leaks.toString(),
            LOWER,
            1));
  }
}
