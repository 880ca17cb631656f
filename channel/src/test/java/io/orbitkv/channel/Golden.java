package io.orbitkv.channel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** Golden bytes: lines of {@code offset: bytes # field}, in hex; bytes that no line names are 0. */
final class Golden {
  private Golden() {}

  /** The bytes of a golden file, filled up with zeros to {@code length}. */
  static byte[] bytes(String file, int length) {
    byte[] bytes = new byte[length];
    text(file)
        .lines()
        .map(line -> line.replaceFirst("#.*", "").strip())
        .filter(line -> !line.isEmpty())
        .forEach(line -> {
          int colon = line.indexOf(':');
          byte[] part = HexFormat.ofDelimiter(" ").parseHex(line.substring(colon + 1).strip());
          int at = HexFormat.fromHexDigits(line.substring(0, colon));
          System.arraycopy(part, 0, bytes, at, part.length);
        });
    return bytes;
  }

  /** Compares {@code length} bytes at {@code at} with a golden file. */
  static void assertGolden(String file, MemorySegment actual, long at, int length) {
    byte[] found = actual.asSlice(at, length).toArray(JAVA_BYTE);
    assertThat(HexFormat.ofDelimiter(" ").formatHex(found))
        .as(file)
        .isEqualTo(HexFormat.ofDelimiter(" ").formatHex(bytes(file, length)));
  }

  private static String text(String file) {
    try (InputStream in = Golden.class.getResourceAsStream("/golden/" + file)) {
      assertThat(in).as("golden file %s", file).isNotNull();
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
