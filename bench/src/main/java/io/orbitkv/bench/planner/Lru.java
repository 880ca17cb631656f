package io.orbitkv.bench.planner;

/** Least recently used. */
final class Lru extends ReferenceCache {
  private final int capacity;
  private final IdQueues queues;

  Lru(int ids, int capacity) {
    this.capacity = capacity;
    this.queues = new IdQueues(ids, 1);
  }

  @Override
  boolean holds(int id) {
    return queues.of(id) == 0;
  }

  @Override
  void use(int id) {
    if (!holds(id) && queues.size(0) == capacity) {
      queues.remove(queues.oldest(0));
    }
    queues.move(id, 0);
  }
}
