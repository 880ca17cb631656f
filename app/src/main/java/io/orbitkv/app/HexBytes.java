package io.orbitkv.app;

import java.util.HexFormat;
import picocli.CommandLine;

/** Bytes that are written as hexadecimal digits, two a byte. */
final class HexBytes {
  private final byte[] bytes;

  private HexBytes(byte[] bytes) {
    this.bytes = bytes;
  }

  byte[] bytes() {
    return bytes.clone();
  }

  /** For picocli. */
  static final class Converter implements CommandLine.ITypeConverter<HexBytes> {
    @Override
    public HexBytes convert(String value) {
      try {
        return new HexBytes(HexFormat.of().parseHex(value));
      } catch (IllegalArgumentException e) {
        throw new CommandLine.TypeConversionException(
            "\"" + value + "\" is no sequence of hexadecimal digits, two a byte");
      }
    }
  }
}
