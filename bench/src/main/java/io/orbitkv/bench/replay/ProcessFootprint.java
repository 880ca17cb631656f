package io.orbitkv.bench.replay;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What a JVM process uses at one moment.
 *
 * @param heapKib objects that are in use, after a collection
 * @param anonymousKib private memory that is present: heap, metaspace, compiled code, malloc
 * @param sharedKib shared memory that is present: pool, channels, grant tables
 * @param files open file descriptors
 * @see <a href="https://man7.org/linux/man-pages/man5/proc_pid_status.5.html">RssAnon, RssShmem</a>
 */
record ProcessFootprint(double heapKib, double anonymousKib, double sharedKib, double files) {
  private static final Pattern USED = Pattern.compile("\\bused (\\d+)K");
  private static final long BOUND_SECONDS = 60;

  /** Has the process collect its garbage, and looks. */
  static ProcessFootprint of(long pid) throws IOException {
    jcmd(pid, "GC.run");
    double heap = heapKib(jcmd(pid, "GC.heap_info"));
    List<String> status = Files.readAllLines(Path.of("/proc/" + pid + "/status"));
    try (Stream<Path> files = Files.list(Path.of("/proc/" + pid + "/fd"))) {
      return new ProcessFootprint(
          heap, kib(status, "RssAnon:"), kib(status, "RssShmem:"), files.count());
    }
  }

  /** Sum of the generations that the collector names; metaspace is no part of the heap. */
  static double heapKib(String heapInfo) throws IOException {
    double sum = 0;
    boolean found = false;
    for (String line : heapInfo.lines().toList()) {
      Matcher used = USED.matcher(line);
      if (!line.contains("Metaspace") && !line.contains("class space") && used.find()) {
        sum += Double.parseDouble(used.group(1));
        found = true;
      }
    }
    if (!found) {
      throw new IOException("no heap in what jcmd says: " + heapInfo);
    }
    return sum;
  }

  private static double kib(List<String> status, String field) throws IOException {
    for (String line : status) {
      if (line.startsWith(field)) {
        return Double.parseDouble(line.substring(field.length()).replace("kB", "").strip());
      }
    }
    throw new IOException("process status has no " + field);
  }

  private static String jcmd(long pid, String command) throws IOException {
    String tool = Path.of(System.getProperty("java.home"), "bin", "jcmd").toString();
    Process process =
        new ProcessBuilder(tool, Long.toString(pid), command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      if (!process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
        throw new IOException("jcmd " + command + " failed: pid=" + pid + ", said=" + said);
      }
    } catch (InterruptedException e) {
      process.destroy();
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while jcmd ran", e);
    }
    return said;
  }
}
