package io.orbitkv.app;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import picocli.CommandLine;

/**
 * Where a command writes its JSON.
 *
 * @param file the file; null for standard output
 */
record JsonFile(Path file) {
  private static final String STANDARD_OUTPUT = "-";

  /** Whether the JSON takes the place of what a person would read. */
  boolean isStandardOutput() {
    return file == null;
  }

  /**
   * Writes one object.
   *
   * @throws IOException naming the file when it cannot be written
   */
  void write(String json) throws IOException {
    if (file == null) {
      System.out.println(json);
      return;
    }
    try {
      Files.writeString(file, json + "\n");
    } catch (IOException e) {
      throw new IOException(
          "JSON cannot be written: file=" + file + ", " + e.getClass().getSimpleName(), e);
    }
  }

  /** For picocli. */
  static final class Converter implements CommandLine.ITypeConverter<JsonFile> {
    @Override
    public JsonFile convert(String value) {
      return new JsonFile(
          value.equals(STANDARD_OUTPUT) ? null : new PathConverter().convert(value));
    }
  }
}
