package io.orbitkv.linux;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * Finds out whether a task allocates once it is compiled. When that is depends on the load of the
 * machine, so the task is run until it allocates nothing, or for long.
 */
final class Allocations {
  private static final int RUNS = 10_000;
  private static final long LONG_NS = 30_000_000_000L;

  private Allocations() {}

  /** Whether the task comes to allocate less than a byte a run. */
  static boolean vanish(Runnable task) {
    return fallBelow(task, 1);
  }

  /** Whether the task comes to allocate less than so many bytes a run. */
  static boolean fallBelow(Runnable task, long bytesARun) {
    long startNs = System.nanoTime();
    while (System.nanoTime() - startNs < LONG_NS) {
      if (bytes(task) < RUNS * bytesARun) {
        return true;
      }
    }
    return false;
  }

  private static long bytes(Runnable task) {
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < RUNS; i++) {
      task.run();
    }
    return threads.getCurrentThreadAllocatedBytes() - before;
  }
}
