package io.orbitkv.bench.planner;

/**
 * W-TinyLFU: a window of one hundredth, behind it a segmented LRU that admits the more frequent of
 * two. <a href="https://dl.acm.org/doi/10.1145/3149371">Einziger, Friedman, Manes, ACM TOS 13(4),
 * 2017</a>. Frequencies are exact, capped at 15, and halved every ten uses a place, where the paper
 * has a sketch.
 */
final class WTinyLfu extends ReferenceCache {
  private static final int WINDOW = 0;
  private static final int PROBATION = 1;
  private static final int PROTECTED = 2;
  private static final int MAX_COUNT = 15;
  private static final int USES_A_PLACE = 10;

  private final int windowCapacity;
  private final int mainCapacity;
  private final int protectedCapacity;
  private final IdQueues queues;
  private final byte[] count;
  private final int halveAfter;
  private int uses;

  WTinyLfu(int ids, int capacity) {
    windowCapacity = Math.max(1, capacity / 100);
    mainCapacity = capacity - windowCapacity;
    protectedCapacity = mainCapacity * 4 / 5;
    queues = new IdQueues(ids, 3);
    count = new byte[ids];
    halveAfter = Math.max(1, USES_A_PLACE * capacity);
  }

  @Override
  boolean holds(int id) {
    return queues.of(id) != IdQueues.NONE;
  }

  @Override
  void use(int id) {
    count(id);
    switch (queues.of(id)) {
      case WINDOW -> queues.move(id, WINDOW);
      case PROTECTED -> queues.move(id, PROTECTED);
      case PROBATION -> protect(id);
      default -> insert(id);
    }
  }

  private void count(int id) {
    count[id] = (byte) Math.min(MAX_COUNT, count[id] + 1);
    if (++uses == halveAfter) {
      uses = 0;
      for (int i = 0; i < count.length; i++) {
        count[i] >>= 1;
      }
    }
  }

  private void protect(int id) {
    queues.move(id, PROTECTED);
    if (queues.size(PROTECTED) > protectedCapacity) {
      queues.move(queues.oldest(PROTECTED), PROBATION);
    }
  }

  private void insert(int id) {
    queues.move(id, WINDOW);
    if (queues.size(WINDOW) <= windowCapacity) {
      return;
    }
    int candidate = queues.oldest(WINDOW);
    if (queues.size(PROBATION) + queues.size(PROTECTED) < mainCapacity) {
      queues.move(candidate, PROBATION);
      return;
    }
    if (mainCapacity == 0) {
      queues.remove(candidate);
      return;
    }
    int victim = queues.oldest(queues.size(PROBATION) > 0 ? PROBATION : PROTECTED);
    if (count[candidate] > count[victim]) {
      queues.remove(victim);
      queues.move(candidate, PROBATION);
    } else {
      queues.remove(candidate);
    }
  }
}
