package io.orbitkv.linux;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** Measures what a task allocates once it is compiled. */
final class Allocations {
  private static final int WARM_UP = 50_000;

  private Allocations() {}

  /** Heap bytes that {@code runs} runs of a warm task allocate. */
  static long bytes(int runs, Runnable task) {
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    repeat(WARM_UP, task);
    long before = threads.getCurrentThreadAllocatedBytes();
    repeat(runs, task);
    return threads.getCurrentThreadAllocatedBytes() - before;
  }

  private static void repeat(int runs, Runnable task) {
    for (int i = 0; i < runs; i++) {
      task.run();
    }
  }
}
