package io.orbitkv.bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * What a benchmark must not leave behind, also when the process is asked to end meanwhile: children
 * and folders. They are ended in the reverse of the order in which they were added. Thread-safe.
 */
final class Leftovers implements AutoCloseable {
  private final List<AutoCloseable> left = new ArrayList<>();
  private final Thread hook = new Thread(this::end, "orbitkv-bench-end");
  private boolean ended;

  /** Makes something that has to be ended. */
  @FunctionalInterface
  interface Maker<T extends AutoCloseable> {
    T make() throws IOException;
  }

  private Leftovers() {}

  static Leftovers open() {
    Leftovers leftovers = new Leftovers();
    Runtime.getRuntime().addShutdownHook(leftovers.hook);
    return leftovers;
  }

  /**
   * Makes something and adds it; an end of the process waits until it is made.
   *
   * @throws IOException when the process is about to end, or as the maker
   */
  synchronized <T extends AutoCloseable> T make(Maker<T> maker) throws IOException {
    if (ended) {
      throw new IOException("the benchmark was ended");
    }
    T made = maker.make();
    left.add(made);
    return made;
  }

  /** Adds what runs already; ends it at once when the process is about to end. */
  synchronized void add(AutoCloseable running) {
    left.add(running);
    if (ended) {
      end();
    }
  }

  /** Ends everything that was added. */
  @Override
  public void close() {
    end();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) { // the process ends, and the hook has run or finds nothing
      return;
    }
  }

  private synchronized void end() {
    ended = true;
    while (!left.isEmpty()) {
      try {
        left.removeLast().close();
      } catch (Exception e) {
        System.err.println("orbitkv: something could not be ended: " + e.getMessage());
      }
    }
  }
}
