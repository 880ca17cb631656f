package io.orbitkv.bench.planner;

/**
 * S3-FIFO: a small queue for a tenth of the cache, a main queue, and a ghost queue as long as the
 * main one. <a href="https://dl.acm.org/doi/10.1145/3600006.3613147">Yang et al., SOSP 2023</a>,
 * algorithm 1.
 */
final class S3Fifo extends ReferenceCache {
  private static final int SMALL = 0;
  private static final int MAIN = 1;
  private static final int GHOST = 2;
  private static final int MAX_COUNT = 3;

  private final int capacity;
  private final int smallCapacity;
  private final IdQueues queues;
  private final byte[] count;

  S3Fifo(int ids, int capacity) {
    this.capacity = capacity;
    this.smallCapacity = Math.max(1, capacity / 10);
    this.queues = new IdQueues(ids, 3);
    this.count = new byte[ids];
  }

  @Override
  boolean holds(int id) {
    return queues.of(id) == SMALL || queues.of(id) == MAIN;
  }

  @Override
  void use(int id) {
    if (holds(id)) {
      count[id] = (byte) Math.min(MAX_COUNT, count[id] + 1);
      return;
    }
    boolean ghost = queues.of(id) == GHOST;
    queues.remove(id);
    while (queues.size(SMALL) + queues.size(MAIN) >= capacity) {
      evict();
    }
    count[id] = 0;
    queues.move(id, ghost ? MAIN : SMALL);
  }

  private void evict() {
    if (queues.size(SMALL) >= smallCapacity || queues.size(MAIN) == 0) {
      evictSmall();
    } else {
      evictMain();
    }
  }

  /** Moves blocks that were used more than once to the main queue, until one was not. */
  private void evictSmall() {
    while (queues.size(SMALL) > 0) {
      int id = queues.oldest(SMALL);
      if (count[id] > 1) {
        count[id] = 0;
        queues.move(id, MAIN);
      } else {
        queues.move(id, GHOST);
        if (queues.size(GHOST) > capacity - smallCapacity) {
          queues.remove(queues.oldest(GHOST));
        }
        return;
      }
    }
  }

  private void evictMain() {
    while (true) {
      int id = queues.oldest(MAIN);
      if (count[id] == 0) {
        queues.remove(id);
        return;
      }
      count[id]--;
      queues.move(id, MAIN);
    }
  }
}
