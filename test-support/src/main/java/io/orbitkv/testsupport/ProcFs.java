package io.orbitkv.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What the kernel says of a process. */
public final class ProcFs {
  private ProcFs() {}

  /** Lines of the process's memory map that contain a word. */
  public static List<String> maps(long pid, String word) throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/" + pid + "/maps"))) {
      return lines.filter(line -> line.contains(word)).toList();
    }
  }

  /** Number of open sockets. */
  public static long openSockets(long pid) throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/" + pid + "/fd"))) {
      return files.filter(ProcFs::isSocket).count();
    }
  }

  private static boolean isSocket(Path fd) {
    try {
      return Files.readSymbolicLink(fd).toString().startsWith("socket:");
    } catch (IOException e) {
      return false; // closed since
    }
  }

  /** Number of open file descriptors. */
  public static long openFiles(long pid) throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/" + pid + "/fd"))) {
      return files.count();
    }
  }
}
