package io.orbitkv.linux;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Processor time of processes.
 *
 * @see <a href="https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html">proc_pid_stat(5)</a>
 */
public final class CpuClock {
  /** Ticks a second of /proc, fixed at 100 for programs on every machine. */
  private static final double TICKS_PER_SECOND = 100;

  /** Index of utime, field 14 of the line, behind the state, field 3, which starts the rest. */
  private static final int USER_INDEX = 11;

  private CpuClock() {}

  /**
   * Processor seconds that a process has used, in user and kernel mode, in steps of 10 ms.
   *
   * @throws IOException when there is no such process
   */
  public static double cpuSeconds(int pid) throws IOException {
    return cpuSeconds(Path.of("/proc"), pid);
  }

  static double cpuSeconds(Path proc, int pid) throws IOException {
    // The name, second field, may hold any byte: spaces, brackets, broken UTF-8.
    var line =
        Files.readString(
            proc.resolve(Integer.toString(pid)).resolve("stat"), StandardCharsets.ISO_8859_1);
    var fields = line.substring(line.lastIndexOf(')') + 2).split(" ", -1);
    long ticks = Long.parseLong(fields[USER_INDEX]) + Long.parseLong(fields[USER_INDEX + 1]);
    return ticks / TICKS_PER_SECOND;
  }
}
