package io.orbitkv.bench.planner;

import java.util.Arrays;

/** Queues of block ids, each id in at most one of them, with removal from the middle. */
final class IdQueues {
  /** Queue of ids that are in none. */
  static final int NONE = -1;

  private final int ids;
  private final int[] older;
  private final int[] newer;
  private final int[] queue;
  private final int[] size;

  /** Empty queues, numbered from 0, for ids from 0. */
  IdQueues(int ids, int queues) {
    this.ids = ids;
    older = new int[ids + queues];
    newer = new int[ids + queues];
    queue = new int[ids];
    size = new int[queues];
    Arrays.fill(queue, NONE);
    for (int q = 0; q < queues; q++) {
      older[ids + q] = ids + q;
      newer[ids + q] = ids + q;
    }
  }

  /** Queue that the id is in. */
  int of(int id) {
    return queue[id];
  }

  int size(int q) {
    return size[q];
  }

  /** The id that has been in the queue for the longest; the queue must not be empty. */
  int oldest(int q) {
    if (size[q] == 0) {
      throw new IllegalStateException("queue " + q + " is empty");
    }
    return newer[ids + q];
  }

  /** Moves an id, wherever it is, to the newest end of a queue. */
  void move(int id, int q) {
    remove(id);
    int end = ids + q;
    older[id] = older[end];
    newer[id] = end;
    newer[older[end]] = id;
    older[end] = id;
    queue[id] = q;
    size[q]++;
  }

  /** Takes an id out of its queue, if it is in one. */
  void remove(int id) {
    if (queue[id] != NONE) {
      newer[older[id]] = newer[id];
      older[newer[id]] = older[id];
      size[queue[id]]--;
      queue[id] = NONE;
    }
  }
}
