package io.orbitkv.client;

/**
 * Says when earlier work on the pages of an operation has ended: of a publish, that the bytes are
 * written; of a restore, that earlier users of the target pages are done. A copy starts only behind
 * its fence.
 */
@FunctionalInterface
public interface Fence {
  /** True once the earlier work has ended; never false again after that. Must not block. */
  boolean isDone();

  /** A fence for pages that nobody else uses. */
  static Fence done() {
    return () -> true;
  }
}
