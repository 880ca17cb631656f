package io.orbitkv.linux;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * How much memory this process may still take: of the machine, and under the control groups it is
 * in.
 *
 * @param availableBytes what the machine has available without swapping, MemAvailable
 * @param cgroupLimitBytes limit of the tightest group, of this process's and their ancestors;
 *     {@link Long#MAX_VALUE} when none has one
 * @param cgroupUsedBytes what that group uses, less file pages that the kernel would give up first;
 *     0 when none has a limit
 * @see <a href="https://man7.org/linux/man-pages/man5/proc_meminfo.5.html">proc_meminfo(5)</a>
 * @see <a href="https://man7.org/linux/man-pages/man7/cgroups.7.html">cgroups(7)</a>
 */
public record MemoryFacts(long availableBytes, long cgroupLimitBytes, long cgroupUsedBytes) {
  /**
   * The facts of now.
   *
   * @throws IOException when /proc cannot be read
   */
  public static MemoryFacts read() throws IOException {
    return read(Path.of("/proc"), Path.of("/sys/fs/cgroup"));
  }

  /**
   * The facts as below other roots.
   *
   * @param proc instead of /proc; holds {@code meminfo} and {@code self/cgroup}
   * @param cgroupRoot instead of /sys/fs/cgroup
   * @throws IOException when {@code proc} cannot be read
   */
  public static MemoryFacts read(Path proc, Path cgroupRoot) throws IOException {
    long availableBytes = availableBytes(proc.resolve("meminfo"));
    var cgroup = CgroupMemory.read(proc.resolve("self").resolve("cgroup"), cgroupRoot);
    return new MemoryFacts(availableBytes, cgroup.limitBytes(), cgroup.usedBytes());
  }

  private static long availableBytes(Path meminfo) throws IOException {
    for (var line : Files.readAllLines(meminfo)) {
      if (line.startsWith("MemAvailable:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) << 10; // "MemAvailable:   123 kB"
      }
    }
    throw new IOException("no MemAvailable: path=" + meminfo);
  }

  /** What may be taken: the machine's or the group's, whichever is less; never negative. */
  public long freeBytes() {
    return Math.min(availableBytes, Math.max(0, cgroupLimitBytes - cgroupUsedBytes));
  }
}
