package io.orbitkv.storage;

import java.util.function.Consumer;

/**
 * Moves the bytes of requests on threads of its own. One thread submits; who made it is told of
 * every request that is done, on an I/O thread. A request that the device never answers is never
 * handed back, and holds up as little as the backend allows.
 */
interface BlockIo extends AutoCloseable {
  /** Makes a backend that hands finished requests to {@code done}. */
  @FunctionalInterface
  interface Factory {
    /** A backend with its threads started. */
    BlockIo create(String name, Consumer<IoRequest> done);
  }

  /** Requests that may be in progress at once. */
  int depth();

  /** Takes a request over; false when too many wait already. */
  boolean submit(IoRequest request);

  /** What it is called in messages. */
  String name();

  /**
   * Ends the threads after what is in progress, waiting a few seconds at most.
   *
   * @throws IllegalStateException when something is still in progress then: its memory must stay
   */
  @Override
  void close();
}
