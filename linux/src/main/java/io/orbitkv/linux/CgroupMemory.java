package io.orbitkv.linux;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * Memory limit and use of one control group, version 1 or 2.
 *
 * @param limitBytes {@link Long#MAX_VALUE} for none
 * @param usedBytes charged memory less inactive file pages
 * @see <a href="https://docs.kernel.org/admin-guide/cgroup-v2.html">cgroup v2</a>
 * @see <a href="https://docs.kernel.org/admin-guide/cgroup-v1/memory.html">memory, cgroup v1</a>
 */
record CgroupMemory(long limitBytes, long usedBytes) {
  private static final CgroupMemory UNLIMITED = new CgroupMemory(Long.MAX_VALUE, 0);

  /** Version 1 writes "no limit" as the largest page multiple; no machine has that much. */
  private static final long NO_LIMIT_FROM = 1L << 62;

  private enum Version {
    V1("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),
    V2("memory.max", "memory.current", "inactive_file ");

    final String limitFile;
    final String usedFile;
    final String inactiveKey;

    Version(String limitFile, String usedFile, String inactiveKey) {
      this.limitFile = limitFile;
      this.usedFile = usedFile;
      this.inactiveKey = inactiveKey;
    }
  }

  /**
   * The group with the least left among those of a process and their ancestors.
   *
   * @param membership the process's {@code /proc/PID/cgroup}: lines {@code id:controllers:path}
   * @param root where the hierarchies are mounted
   */
  static CgroupMemory read(Path membership, Path root) throws IOException {
    var tightest = UNLIMITED;
    if (!Files.exists(membership)) {
      return tightest;
    }
    for (var line : Files.readAllLines(membership)) {
      var parts = line.split(":", 3);
      if (parts.length < 3) {
        continue;
      }
      if (parts[1].isEmpty()) {
        var unified = root.resolve("unified");
        tightest =
            tightest.tighter(
                walk(Files.isDirectory(unified) ? unified : root, parts[2], Version.V2));
      } else if (Stream.of(parts[1].split(",", -1)).anyMatch("memory"::equals)) {
        tightest = tightest.tighter(walk(root.resolve("memory"), parts[2], Version.V1));
      }
    }
    return tightest;
  }

  /** From a group up to its root; groups that are not visible from here count as without limit. */
  private static CgroupMemory walk(Path root, String path, Version version) throws IOException {
    var base = root.normalize();
    var group = base.resolve(path.substring(path.startsWith("/") ? 1 : 0)).normalize();
    var tightest = UNLIMITED;
    for (; group != null && group.startsWith(base); group = group.getParent()) {
      tightest = tightest.tighter(readGroup(group, version));
    }
    return tightest;
  }

  private static CgroupMemory readGroup(Path group, Version version) throws IOException {
    try {
      var limit = Files.readString(group.resolve(version.limitFile)).strip();
      if (limit.equals("max") || Long.parseLong(limit) >= NO_LIMIT_FROM) {
        return UNLIMITED;
      }
      long used = Long.parseLong(Files.readString(group.resolve(version.usedFile)).strip());
      long inactive = inactiveFileBytes(group, version);
      return new CgroupMemory(Long.parseLong(limit), Math.max(0, used - inactive));
    } catch (NoSuchFileException e) {
      return UNLIMITED;
    }
  }

  private static long inactiveFileBytes(Path group, Version version) throws IOException {
    var statistics = group.resolve("memory.stat");
    if (!Files.exists(statistics)) {
      return 0;
    }
    for (var line : Files.readAllLines(statistics)) {
      if (line.startsWith(version.inactiveKey)) {
        return Long.parseLong(line.substring(version.inactiveKey.length()).strip());
      }
    }
    return 0;
  }

  private CgroupMemory tighter(CgroupMemory other) {
    return other.leftBytes() < leftBytes() ? other : this;
  }

  private long leftBytes() {
    return limitBytes - usedBytes;
  }
}
