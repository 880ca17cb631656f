package io.orbitkv.bench.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is no trace is refused by one typed error of one line, whatever it is. */
class TraceFuzzTest {
  private static final String RIGHT = "{\"timestamp\":1,\"hash_ids\":[1,2,3]}\n";

  @TempDir private Path directory;

  private Path file(byte[] content) {
    try {
      return Files.write(directory.resolve("trace.jsonl"), content);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static byte[] packed(byte[] content) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
      out.write(content);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private void assertRefused(byte[] content, Object what) {
    String name = file(content).toString();
    assertThatThrownBy(() -> Trace.open(name))
        .as("%s", what)
        .isInstanceOf(TraceException.class)
        .hasMessageContaining(name)
        .satisfies(e -> assertThat(e.getMessage().lines()).as("%s", what).hasSize(1))
        .satisfies(e -> assertThat(e.getMessage().length()).isLessThan(2000));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "\n\n\n",
        "\u0000",
        "hello",
        "[]",
        "null",
        "{}",
        "{\"hash_ids\":null}",
        "{\"hash_ids\":{}}",
        "{\"hash_ids\":\"1,2\"}",
        "{\"hash_ids\":[-1]}",
        "{\"hash_ids\":[1.5]}",
        "{\"hash_ids\":[1e3]}",
        "{\"hash_ids\":[\"1\"]}",
        "{\"hash_ids\":[null]}",
        "{\"hash_ids\":[true]}",
        "{\"hash_ids\":[[1]]}",
        "{\"hash_ids\":[NaN]}",
        "{\"hash_ids\":[9223372036854775808]}",
        "{\"hash_ids\":[1,]}",
        "{\"hash_ids\":[1]",
        "{\"hash_ids\":[1]} {\"hash_ids\":[2]}",
        "{\"hash_ids\":[1]}}",
        "{\"hash_ids\":[1],\"hash_ids\":[-1]}",
        "{'hash_ids':[1]}",
        "\ufeff\ufeff{\"hash_ids\":[1]}"
      })
  void shouldRefuseWhatIsNoTrace(String content) {
    assertRefused(content.getBytes(StandardCharsets.UTF_8), content);
    assertRefused(packed(content.getBytes(StandardCharsets.UTF_8)), content);
  }

  @Test
  void shouldRefuseGiantNumbersAndDepths() {
    String digits = "9".repeat(100_000);
    assertRefused(("{\"hash_ids\":[" + digits + "]}").getBytes(StandardCharsets.UTF_8), "digits");
    String open = "[".repeat(1_000_000);
    assertRefused(("{\"hash_ids\":" + open).getBytes(StandardCharsets.UTF_8), "depth");
    String key = "k".repeat(1 << 20);
    assertRefused(("{\"" + key + "\":1}").getBytes(StandardCharsets.UTF_8), "key");
  }

  @Test
  void shouldRefuseALineWithoutEnd() {
    byte[] endless = new byte[96 << 20];
    Arrays.fill(endless, (byte) ' ');
    assertRefused(packed(endless), "96 MiB without a line end");
  }

  @Test
  void shouldRefuseADirectoryAndNothing() {
    assertThatThrownBy(() -> Trace.open(directory.toString())).isInstanceOf(TraceException.class);
    assertThatThrownBy(() -> Trace.open(directory.resolve("none").toString()))
        .isInstanceOf(TraceException.class);
    assertThatThrownBy(() -> Trace.open("")).isInstanceOf(TraceException.class);
    assertThatThrownBy(() -> Trace.open("a\u0000b")).isInstanceOf(TraceException.class);
  }

  /** Every length: never more than what was whole, never anything else than the typed error. */
  @Test
  void shouldTakeOrRefuseACutTrace() {
    byte[] plain = RIGHT.repeat(3).getBytes(StandardCharsets.UTF_8);
    byte[] gzip = packed(plain);
    for (int length = 0; length < gzip.length; length++) {
      assertRefused(Arrays.copyOf(gzip, length), "gzip cut to " + length);
    }
    for (int length = 0; length < plain.length; length++) {
      assertTakenOrRefused(Arrays.copyOf(plain, length), "plain cut to " + length);
    }
  }

  @Test
  void shouldTakeOrRefuseChangedBytes() {
    long seed = System.nanoTime();
    SplittableRandom random = new SplittableRandom(seed);
    byte[] plain = RIGHT.repeat(3).getBytes(StandardCharsets.UTF_8);
    byte[] gzip = packed(plain);
    for (int round = 0; round < 2000; round++) {
      byte[] changed = (round % 2 == 0 ? plain : gzip).clone();
      for (int i = random.nextInt(1, 5); i > 0; i--) {
        changed[random.nextInt(changed.length)] = (byte) random.nextInt();
      }
      assertTakenOrRefused(changed, "seed=" + seed + ", round=" + round);
    }
  }

  private void assertTakenOrRefused(byte[] content, String what) {
    try {
      Trace trace = Trace.open(file(content).toString());
      assertThat(trace.requests()).as(what).hasSizeBetween(1, 3);
      for (long[] ids : trace.requests()) {
        assertThat(Arrays.stream(ids).allMatch(id -> id >= 0)).as(what).isTrue();
      }
    } catch (TraceException e) {
      assertThat(e.getMessage().lines()).as(what).hasSize(1);
    }
  }
}
