package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Fails a test that leaves a descriptor open or a memfd mapped. Files of the class path, which the
 * JVM opens when it likes, do not count.
 */
final class LeakCheck implements BeforeEachCallback, AfterEachCallback {
  private List<String> before = List.of();

  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    before = held();
  }

  @Override
  public void afterEach(ExtensionContext context) throws IOException {
    assertThat(held()).isEqualTo(before);
  }

  /** What this process holds: targets of its descriptors, and mapped memfds. */
  static List<String> held() throws IOException {
    var held = new ArrayList<String>();
    try (var entries = Files.list(Path.of("/proc/self/fd"))) {
      for (var entry : entries.toList()) {
        var target = target(entry);
        if (target.matches("(/memfd:|socket:|anon_inode:|/tmp/junit).*")) {
          held.add(target);
        }
      }
    }
    try (var lines = Files.lines(Path.of("/proc/self/maps"))) {
      lines.filter(line -> line.contains("/memfd:")).forEach(held::add);
    }
    held.sort(null);
    return held;
  }

  private static String target(Path entry) {
    try {
      return Files.readSymbolicLink(entry).toString();
    } catch (IOException e) {
      return ""; // closed since it was listed, as the listing's own descriptor
    }
  }
}
