package io.orbitkv.bench.planner;

/**
 * A textbook policy over single blocks. The blocks of a request are used from the last to the
 * first, so that policies that go by recency let the tail of a chain go before its head.
 */
abstract class ReferenceCache implements PrefixCache {
  @Override
  public final int request(int[] ids) {
    int hit = 0;
    while (hit < ids.length && holds(ids[hit])) {
      hit++;
    }
    for (int i = ids.length - 1; i >= 0; i--) {
      use(ids[i]);
    }
    return hit;
  }

  /** True when the block is in the cache. */
  abstract boolean holds(int id);

  /** Uses a block, and stores it when it is not there. */
  abstract void use(int id);
}
