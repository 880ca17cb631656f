package io.orbitkv.bench;

import io.orbitkv.linux.Affinity;
import java.io.IOException;
import java.util.List;

/**
 * What every benchmark uses.
 *
 * @param command how to run the command line of this program, without arguments
 * @param reference the reference programs
 * @param cpus processors that may be used, ascending
 * @param scope which cases to measure, and for how long
 */
record BenchContext(
    List<String> command, Reference reference, List<Integer> cpus, BenchScope scope) {
  /** Something that may fail to start. */
  @FunctionalInterface
  interface Starter<T> {
    T start() throws IOException;
  }

  /** Processor of the measuring side. */
  int clientCpu() {
    return cpus.getFirst();
  }

  /** Processor of the other side: another one where there is one. */
  int serverCpu() {
    return cpus.getLast();
  }

  /** Starts a child on the server's processor: children inherit it from the starting thread. */
  <T> T onServerCpu(Starter<T> starter) throws IOException {
    Affinity.pinCurrentThread(serverCpu());
    try {
      return starter.start();
    } finally {
      pin();
    }
  }

  /** Keeps the current thread, and threads that it starts, on the client's processor. */
  void pin() {
    Affinity.pinCurrentThread(clientCpu());
  }

  /** Lets the current thread run anywhere again. */
  void unpin() {
    Affinity.restore(cpus.stream().mapToInt(Integer::intValue).toArray());
  }
}
