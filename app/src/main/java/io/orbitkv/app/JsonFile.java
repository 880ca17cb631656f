package io.orbitkv.app;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where a command writes its JSON. */
final class JsonFile {
  private JsonFile() {}

  /**
   * Writes one object.
   *
   * @param file {@code -} for standard output
   * @throws IOException naming the file when it cannot be written
   */
  static void write(String file, String json) throws IOException {
    if (file.equals("-")) {
      System.out.println(json);
      return;
    }
    try {
      Files.writeString(Path.of(file), json + "\n");
    } catch (IOException e) {
      throw new IOException(
          "JSON cannot be written: file=" + file + ", " + e.getClass().getSimpleName(), e);
    }
  }
}
