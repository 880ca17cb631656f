package io.orbitkv.bench.replay;

import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.zip.GZIPInputStream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * A request trace: one JSON object a line, of which {@code hash_ids} is used, the ids of the blocks
 * of a request in prefix order.
 *
 * @param name file or name it was opened by
 * @param requests block ids of each request, each at least 0
 */
public record Trace(String name, List<long[]> requests) {
  /** Names of the traces that ship with the program. */
  public static final Set<String> SHIPPED = Set.of("mooncake-conversation", "mooncake-synthetic");

  private static final int GZIP_MAGIC = 0x8b1f;
  private static final JsonMapper JSON = new JsonMapper();

  /** Copies the list. */
  public Trace {
    requests = List.copyOf(requests);
  }

  /**
   * Reads a trace.
   *
   * @param nameOrFile a shipped name, with or without {@code .jsonl}, or a file, which may be
   *     compressed with gzip
   * @throws TraceException naming file, line and rule when it cannot be read
   */
  public static Trace open(String nameOrFile) {
    Path file = path(nameOrFile);
    String shipped = nameOrFile.replaceFirst("\\.jsonl$", "");
    boolean isShipped = SHIPPED.contains(shipped) && !Files.exists(file);
    try (InputStream in =
        isShipped
            ? Trace.class.getResourceAsStream("/traces/" + shipped + ".jsonl.gz")
            : Files.newInputStream(file)) {
      return read(isShipped ? shipped : nameOrFile, in);
    } catch (IOException e) {
      throw unreadable(nameOrFile, e);
    }
  }

  private static Path path(String nameOrFile) {
    try {
      return Path.of(nameOrFile);
    } catch (InvalidPathException e) {
      throw unreadable(nameOrFile, e);
    }
  }

  private static TraceException unreadable(String nameOrFile, Exception cause) {
    return new TraceException(
        "trace "
            + nameOrFile
            + " cannot be read ("
            + cause.getClass().getSimpleName()
            + "); it must be a file or one of "
            + String.join(", ", SHIPPED.stream().sorted().toList()),
        cause);
  }

  static Trace read(String name, InputStream in) throws IOException {
    List<long[]> requests = new ArrayList<>();
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(unpacked(in), StandardCharsets.UTF_8))) {
      int number = 0;
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        number++;
        if (!line.isBlank()) {
          requests.add(hashIds(name, number, line));
        }
      }
    }
    if (requests.isEmpty()) {
      throw new TraceException("trace " + name + " has no requests");
    }
    return new Trace(name, requests);
  }

  /** The first requests only. */
  public Trace limit(int count) {
    return count >= requests.size() ? this : new Trace(name, requests.subList(0, count));
  }

  /** All but the first requests. */
  public Trace skip(int count) {
    return count == 0
        ? this
        : new Trace(name, requests.subList(Math.min(count, requests.size()), requests.size()));
  }

  /** Blocks of the longest request. */
  public int longest() {
    return requests.stream().mapToInt(ids -> ids.length).max().orElse(0);
  }

  private static InputStream unpacked(InputStream in) throws IOException {
    BufferedInputStream buffered = new BufferedInputStream(in);
    buffered.mark(2);
    int magic = buffered.read() | buffered.read() << 8;
    buffered.reset();
    return magic == GZIP_MAGIC ? new GZIPInputStream(buffered) : buffered;
  }

  private static long[] hashIds(String name, int number, String line) {
    JsonNode ids = parse(name, number, line).path("hash_ids");
    if (!ids.isArray()) {
      throw broken(name, number, "hash_ids must be a list of numbers", null);
    }
    long[] result = new long[ids.size()];
    for (int i = 0; i < result.length; i++) {
      JsonNode id = ids.get(i);
      if (!id.isIntegralNumber() || !id.canConvertToLong() || id.longValue() < 0) {
        throw broken(
            name, number, "hash_ids[" + i + "]=" + id + " must be a whole number from 0 on", null);
      }
      result[i] = id.longValue();
    }
    return result;
  }

  private static JsonNode parse(String name, int number, String line) {
    try {
      JsonNode node = JSON.readTree(line);
      if (!node.isObject()) {
        throw broken(name, number, "each line must be one JSON object", null);
      }
      return node;
    } catch (JacksonException e) {
      throw broken(name, number, "each line must be one JSON object", e);
    }
  }

  private static TraceException broken(String name, int number, String rule, Throwable cause) {
    return new TraceException("trace " + name + " line " + number + ": " + rule, cause);
  }
}
