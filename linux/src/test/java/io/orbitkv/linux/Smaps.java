package io.orbitkv.linux;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;

/** What /proc/self/smaps says of one mapping. */
final class Smaps {
  private Smaps() {}

  /** Value of a field, as "Rss" or "VmFlags", of the area that starts where the segment does. */
  static String field(MemorySegment segment, String name) throws IOException {
    var start = Long.toHexString(segment.address()) + "-";
    boolean inside = false;
    for (var line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
        inside = line.startsWith(start);
      } else if (inside && line.startsWith(name + ":")) {
        return line.substring(name.length() + 1).strip();
      }
    }
    throw new IOException("no such field: area=" + start + ", field=" + name);
  }

  static long residentBytes(MemorySegment segment) throws IOException {
    return Long.parseLong(field(segment, "Rss").replace(" kB", "")) << 10;
  }
}
