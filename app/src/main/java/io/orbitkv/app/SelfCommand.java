package io.orbitkv.app;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** How to start this program again as a child process, with the same JVM and flags. */
final class SelfCommand {
  private SelfCommand() {}

  /** The command without arguments of the program. */
  static List<String> line() {
    List<String> line = new ArrayList<>();
    line.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    line.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    line.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
    return line;
  }
}
