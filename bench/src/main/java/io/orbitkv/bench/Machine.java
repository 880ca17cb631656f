package io.orbitkv.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Facts of the machine that figures depend on. */
public final class Machine {
  private static final double QUIET_IDLE = 0.92;
  private static final long WATCH_NS = 400_000_000;
  private static final int IDLE_FIELD = 4;

  private Machine() {}

  /** Processor, kernel and JVM in one line. */
  public static String describe() throws IOException {
    String model =
        Files.readAllLines(Path.of("/proc/cpuinfo")).stream()
            .filter(line -> line.startsWith("model name"))
            .map(line -> line.substring(line.indexOf(':') + 1).strip())
            .findFirst()
            .orElse(System.getProperty("os.arch"));
    return model
        + ", "
        + Runtime.getRuntime().availableProcessors()
        + " CPUs, Linux "
        + System.getProperty("os.version")
        + ", Java "
        + Runtime.version();
  }

  /** Whether nearly all processors are idle for a while. */
  public static boolean isQuiet() throws IOException {
    long[] before = cpuTicks();
    long end = System.nanoTime() + WATCH_NS;
    for (long left = WATCH_NS; left > 0; left = end - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
    long[] after = cpuTicks();
    return after[0] - before[0] > QUIET_IDLE * (after[1] - before[1]);
  }

  /** Idle ticks and all ticks of the machine since its start, see proc_stat(5). */
  private static long[] cpuTicks() throws IOException {
    List<String> fields =
        List.of(Files.readAllLines(Path.of("/proc/stat")).getFirst().split(" +", -1));
    long idle = Long.parseLong(fields.get(IDLE_FIELD));
    long all = fields.stream().skip(1).limit(8).mapToLong(Long::parseLong).sum();
    return new long[] {idle, all};
  }
}
