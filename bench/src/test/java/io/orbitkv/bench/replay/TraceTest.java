package io.orbitkv.bench.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.LongStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TraceTest {
  @TempDir private Path directory;

  @ParameterizedTest
  @CsvSource({
    "mooncake-conversation, 12031, 288500, 0.36641",
    "mooncake-synthetic.jsonl, 3993, 121877, 0.63960"
  })
  void shouldReadShippedTraces(String name, int requests, long references, double hitRatio) {
    Trace trace = Trace.open(name);

    assertThat(trace.requests()).hasSize(requests);
    assertThat(trace.requests().stream().mapToLong(ids -> ids.length).sum()).isEqualTo(references);
    assertThat(unboundedHits(trace) / (double) references)
        .isCloseTo(hitRatio, org.assertj.core.data.Offset.offset(5e-6));
  }

  private static long unboundedHits(Trace trace) {
    Set<Long> cached = new HashSet<>();
    long hits = 0;
    for (long[] ids : trace.requests()) {
      hits += LongStream.of(ids).takeWhile(cached::contains).count();
      LongStream.of(ids).forEach(cached::add);
    }
    return hits;
  }

  @Test
  void shouldReadPlainAndCompressedFiles() throws IOException {
    String text = "{\"hash_ids\": [1, 2]}\n\n{\"hash_ids\": [1, 2, 9007199254740993]}\n";
    Path plain = Files.writeString(directory.resolve("plain"), text);
    Path packed = directory.resolve("packed");
    try (GZIPOutputStream out = new GZIPOutputStream(Files.newOutputStream(packed))) {
      out.write(Files.readAllBytes(plain));
    }

    for (Path file : new Path[] {plain, packed}) {
      Trace trace = Trace.open(file.toString());
      assertThat(trace.requests()).hasSize(2);
      assertThat(trace.requests().get(1)).containsExactly(1, 2, 9007199254740993L);
      assertThat(trace.longest()).isEqualTo(3);
      assertThat(trace.limit(1).requests()).hasSize(1);
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "[1]|one JSON object",
        "{\"hash_ids\": [1]|one JSON object",
        "{\"timestamp\": 0}|hash_ids must be a list",
        "{\"hash_ids\": 7}|hash_ids must be a list",
        "{\"hash_ids\": [1, -2]}|hash_ids[1]=-2",
        "{\"hash_ids\": [1.5]}|hash_ids[0]=1.5",
        "{\"hash_ids\": [99999999999999999999]}|hash_ids[0]=99999999999999999999",
        "{\"hash_ids\": [\"a\"]}|hash_ids[0]=\"a\""
      })
  void shouldNameFileLineAndRuleOfBadLine(String line, String rule) throws IOException {
    Path file =
        Files.writeString(directory.resolve("bad.jsonl"), "{\"hash_ids\": [1]}\n" + line + "\n");

    assertThatThrownBy(() -> Trace.open(file.toString()))
        .isInstanceOf(TraceException.class)
        .hasMessageContaining("bad.jsonl line 2: ")
        .hasMessageContaining(rule);
  }

  @Test
  void shouldRefuseEmptyTrace() throws IOException {
    Path file = Files.writeString(directory.resolve("empty"), "\n");

    assertThatThrownBy(() -> Trace.open(file.toString()))
        .isInstanceOf(TraceException.class)
        .hasMessageContaining("no requests");
  }

  @Test
  void shouldNameShippedTracesWhenFileIsMissing() {
    assertThatThrownBy(() -> Trace.open(directory.resolve("none").toString()))
        .isInstanceOf(TraceException.class)
        .hasMessageContaining("mooncake-conversation, mooncake-synthetic");
  }
}
