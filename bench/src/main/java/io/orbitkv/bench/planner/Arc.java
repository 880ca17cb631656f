package io.orbitkv.bench.planner;

/**
 * ARC. <a
 * href="https://www.usenix.org/conference/fast-03/arc-self-tuning-low-overhead-replacement-cache">
 * Megiddo, Modha, FAST 2003</a>, figure 4; the names are the paper's.
 */
final class Arc extends ReferenceCache {
  private static final int T1 = 0;
  private static final int T2 = 1;
  private static final int B1 = 2;
  private static final int B2 = 3;

  private final int c;
  private final IdQueues queues;
  private double p;

  Arc(int ids, int capacity) {
    this.c = capacity;
    this.queues = new IdQueues(ids, 4);
  }

  @Override
  boolean holds(int id) {
    return queues.of(id) == T1 || queues.of(id) == T2;
  }

  @Override
  void use(int id) {
    switch (queues.of(id)) {
      case T1, T2 -> queues.move(id, T2);
      case B1 -> {
        p = Math.min(c, p + Math.max(1, (double) queues.size(B2) / queues.size(B1)));
        replace(false);
        queues.move(id, T2);
      }
      case B2 -> {
        p = Math.max(0, p - Math.max(1, (double) queues.size(B1) / queues.size(B2)));
        replace(true);
        queues.move(id, T2);
      }
      default -> {
        makeRoom();
        queues.move(id, T1);
      }
    }
  }

  private void makeRoom() {
    int l1 = queues.size(T1) + queues.size(B1);
    int all = l1 + queues.size(T2) + queues.size(B2);
    if (l1 == c) {
      if (queues.size(T1) < c) {
        queues.remove(queues.oldest(B1));
        replace(false);
      } else {
        queues.remove(queues.oldest(T1));
      }
    } else if (all >= c) {
      if (all == 2 * c) {
        queues.remove(queues.oldest(B2));
      }
      replace(false);
    }
  }

  private void replace(boolean inB2) {
    int t1 = queues.size(T1);
    boolean fromT1 = t1 > p || (inB2 && t1 == (int) p);
    if ((t1 > 0 && fromT1) || queues.size(T2) == 0) {
      queues.move(queues.oldest(T1), B1);
    } else {
      queues.move(queues.oldest(T2), B2);
    }
  }
}
