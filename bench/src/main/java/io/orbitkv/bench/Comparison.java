package io.orbitkv.bench;

import static io.orbitkv.bench.BenchCase.Better.LOWER;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Compares this source tree with one of its earlier commits: builds that in a temporary folder, and
 * lets both run the same commands in turn. It uses nothing of them but the command line, so that
 * any commit that has its commands can be compared.
 */
public final class Comparison {
  private static final Duration GIT_BOUND = Duration.ofMinutes(2);
  private static final Duration BUILD_BOUND = Duration.ofMinutes(30);
  private static final Duration RUN_BOUND = Duration.ofMinutes(10);

  /** Rounds when none are chosen. */
  public static final int DEFAULT_ROUNDS = 5;

  /** How many times slower than the commit a p50 may be. */
  private static final double MOST_RATIO = 1.15;

  private static final long POOL_BYTES = 1L << 30;
  private static final String TRACE = "mooncake-conversation";
  private static final int REQUESTS = 2000;
  private static final String ROUND_TRIP = "empty command p50";
  private static final List<String> OPERATIONS = List.of("lookup", "restore", "publish");

  private final Path root;
  private final Path folder;
  private final int rounds;
  private Process child;
  private boolean ended;

  private Comparison(Path root, Path folder, int rounds) {
    this.root = root;
    this.folder = folder;
    this.rounds = rounds;
  }

  /**
   * Measures p50 of round trip, lookup, restore and publish, ours beside the commit's.
   *
   * @param root the source tree, with its script {@code orbitkv}
   * @param commit anything that git takes for one
   * @param rounds how often each side runs
   * @throws IOException when the commit is unknown, can not be built, or a run fails
   */
  public static BenchReport run(Path root, String commit, int rounds) throws IOException {
    Comparison comparison =
        new Comparison(root, Files.createTempDirectory("orbitkv-against-"), rounds);
    Thread hook = new Thread(comparison::end, "orbitkv-against-end"); // also when it is interrupted
    Runtime.getRuntime().addShutdownHook(hook);
    try {
      return comparison.run(commit);
    } finally {
      comparison.end();
    }
  }

  /** Ends what runs and deletes the folder; idempotent. */
  private synchronized void end() {
    ended = true;
    if (child != null) {
      endChild();
    }
    try {
      delete(folder);
    } catch (IOException e) {
      throw new UncheckedIOException("folder can not be deleted: " + folder, e);
    }
  }

  private void endChild() {
    child.descendants().forEach(ProcessHandle::destroyForcibly);
    child.destroyForcibly();
  }

  private synchronized Process start(ProcessBuilder builder) throws IOException {
    if (ended) {
      throw new IOException("the comparison was ended");
    }
    child = builder.start();
    return child;
  }

  private BenchReport run(String commit) throws IOException {
    String id = resolve(commit);
    boolean quiet = Machine.isQuiet();
    Path other = folder.resolve("tree");
    command(GIT_BOUND, root, "git", "clone", "-q", "--shared", "-n", ".", other.toString());
    command(GIT_BOUND, other, "git", "checkout", "-q", "--detach", id);
    List<String> theirs = List.of(other.resolve("orbitkv").toString());
    List<String> ours = List.of(root.resolve("orbitkv").toString());
    command(BUILD_BOUND, other, theirs.getFirst(), "--version");
    command(BUILD_BOUND, root, ours.getFirst(), "--version");
    String label = "commit " + id.substring(0, 12);
    List<BenchCase> cases = new ArrayList<>();
    cases.add(roundTrips(ours, theirs, label));
    cases.addAll(operations(ours, theirs, label));
    return new BenchReport("against " + commit, Machine.describe(), quiet, cases, MOST_RATIO);
  }

  private String resolve(String commit) throws IOException {
    try {
      return command(GIT_BOUND, root, "git", "rev-parse", "--verify", "-q", commit + "^{commit}")
          .strip();
    } catch (IOException e) {
      throw new IOException("\"" + commit + "\" is no commit of " + root, e);
    }
  }

  private BenchCase roundTrips(List<String> ours, List<String> theirs, String label)
      throws IOException {
    double[] mine = new double[rounds];
    double[] others = new double[rounds];
    for (int round = 0; round < rounds; round++) {
      boolean first = (round & 1) == 0;
      (first ? mine : others)[round] = roundTrip(first ? ours : theirs);
      (first ? others : mine)[round] = roundTrip(first ? theirs : ours);
    }
    return medians(ROUND_TRIP, "ns", mine, others, label);
  }

  private static BenchCase medians(
      String name, String unit, double[] mine, double[] others, String label) {
    double other = Rounds.median(others);
    return new BenchCase(name, unit, Rounds.median(mine), other, label, LOWER, mine.length);
  }

  private double roundTrip(List<String> side) throws IOException {
    for (JsonNode each : json(side, "bench", "channel", "--json", "-").path("cases")) {
      if (each.path("case").asString("").equals(ROUND_TRIP)) {
        return each.path("ours").asDouble();
      }
    }
    throw new IOException("no case \"" + ROUND_TRIP + "\" in the benchmark of " + side);
  }

  private List<BenchCase> operations(List<String> ours, List<String> theirs, String label)
      throws IOException {
    double[][] mine = new double[OPERATIONS.size()][rounds];
    double[][] others = new double[OPERATIONS.size()][rounds];
    for (int round = 0; round < rounds; round++) {
      boolean first = (round & 1) == 0;
      replay(first ? ours : theirs, first ? mine : others, round);
      replay(first ? theirs : ours, first ? others : mine, round);
    }
    List<BenchCase> cases = new ArrayList<>();
    for (int i = 0; i < OPERATIONS.size(); i++) {
      cases.add(medians(OPERATIONS.get(i) + " p50", "us", mine[i], others[i], label));
    }
    return cases;
  }

  private void replay(List<String> side, double[][] p50s, int round) throws IOException {
    try (ManagerProcess manager = ManagerProcess.start(side, POOL_BYTES)) {
      JsonNode latency =
          json(
                  side,
                  "replay",
                  TRACE,
                  "--socket",
                  manager.socket().toString(),
                  "--limit",
                  Integer.toString(REQUESTS),
                  "--json",
                  "-")
              .path("latency_us");
      for (int i = 0; i < OPERATIONS.size(); i++) {
        p50s[i][round] = latency.path(OPERATIONS.get(i)).path("p50").asDouble();
      }
    }
  }

  private JsonNode json(List<String> side, String... arguments) throws IOException {
    List<String> line = new ArrayList<>(side);
    line.addAll(List.of(arguments));
    try {
      return new JsonMapper().readTree(command(RUN_BOUND, folder, line.toArray(String[]::new)));
    } catch (JacksonException e) {
      throw new IOException("output is no JSON: command=" + line, e);
    }
  }

  /** Output of a command that ended well; what it says on standard error goes there. */
  private String command(Duration bound, Path directory, String... line) throws IOException {
    Path output = Files.createTempFile(folder, "output", ".txt");
    ProcessBuilder builder =
        new ProcessBuilder(line)
            .directory(directory.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .redirectOutput(output.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("ORBITKV_"));
    Process process = start(builder);
    try {
      if (!process.waitFor(bound.toSeconds(), TimeUnit.SECONDS)) {
        throw new IOException("not ended within " + bound + ": " + String.join(" ", line));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while this ran: " + String.join(" ", line), e);
    } finally {
      endChild();
    }
    if (process.exitValue() != 0) {
      throw new IOException(
          "ended with code=" + process.exitValue() + ": " + String.join(" ", line));
    }
    return Files.readString(output);
  }

  private static void delete(Path folder) throws IOException {
    if (!Files.exists(folder)) {
      return;
    }
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }
}
