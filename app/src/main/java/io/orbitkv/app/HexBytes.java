package io.orbitkv.app;

import io.orbitkv.channel.Protocol;
import java.util.HexFormat;
import picocli.CommandLine;

/** Bytes that are written as hexadecimal digits, two a byte. */
final class HexBytes {
  private static final int NAMESPACE_BYTES = 32;

  private final byte[] bytes;

  private HexBytes(byte[] bytes) {
    this.bytes = bytes;
  }

  byte[] bytes() {
    return bytes.clone();
  }

  private static HexBytes parse(String value) {
    try {
      return new HexBytes(HexFormat.of().parseHex(value));
    } catch (IllegalArgumentException e) {
      throw new CommandLine.TypeConversionException(
          "\"" + value + "\" is no sequence of hexadecimal digits, two a byte");
    }
  }

  /** Digest of a namespace, for picocli. An empty one is refused: nobody asks for everything so. */
  static final class Namespace implements CommandLine.ITypeConverter<HexBytes> {
    @Override
    public HexBytes convert(String value) {
      HexBytes parsed = parse(value);
      if (parsed.bytes.length != NAMESPACE_BYTES) {
        throw new CommandLine.TypeConversionException(
            "\"" + value + "\" has digits=" + value.length() + ", wanted=" + 2 * NAMESPACE_BYTES);
      }
      return parsed;
    }
  }

  /** Hash of a block, for picocli. */
  static final class Hash implements CommandLine.ITypeConverter<HexBytes> {
    @Override
    public HexBytes convert(String value) {
      HexBytes parsed = parse(value);
      if (parsed.bytes.length < Protocol.MIN_HASH_BYTES
          || parsed.bytes.length > Protocol.MAX_HASH_BYTES) {
        throw new CommandLine.TypeConversionException(
            "\""
                + value
                + "\" has digits="
                + value.length()
                + ", allowed="
                + 2 * Protocol.MIN_HASH_BYTES
                + ".."
                + 2 * Protocol.MAX_HASH_BYTES);
      }
      return parsed;
    }
  }
}
