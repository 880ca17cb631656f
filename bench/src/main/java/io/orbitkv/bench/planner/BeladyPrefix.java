package io.orbitkv.bench.planner;

import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;

/**
 * The offline optimum: evicts the block whose next use is farthest, the deepest in its chain first
 * among equals, the request's own blocks included. <a
 * href="https://doi.org/10.1147/sj.52.0078">Belady, IBM Systems Journal 5(2), 1966</a>. A bound: it
 * knows the requests to come.
 */
final class BeladyPrefix implements PrefixCache {
  private static final int DEPTH_BITS = 24;

  private final int capacity;
  private final int[][] nextUse; // of each block of each request: the next request with it
  private final boolean[] held;
  private final long[] key; // of each held block: next use and depth
  private final PriorityQueue<Entry> farthest = new PriorityQueue<>(Entry::compareFarthestFirst);
  private int size;
  private int now;

  private record Entry(long key, int id) {
    static int compareFarthestFirst(Entry a, Entry b) {
      return Long.compare(b.key, a.key);
    }
  }

  /**
   * A cache that will be played exactly these requests.
   *
   * @param requests blocks of each request
   */
  BeladyPrefix(int ids, int capacity, List<int[]> requests) {
    this.capacity = capacity;
    this.held = new boolean[ids];
    this.key = new long[ids];
    this.nextUse = new int[requests.size()][];
    int[] next = new int[ids];
    Arrays.fill(next, requests.size());
    for (int r = requests.size() - 1; r >= 0; r--) {
      int[] request = requests.get(r);
      nextUse[r] = new int[request.length];
      for (int i = 0; i < request.length; i++) {
        nextUse[r][i] = next[request[i]];
      }
      for (int id : request) {
        next[id] = r;
      }
    }
  }

  @Override
  public int request(int[] ids) {
    int hit = 0;
    while (hit < ids.length && held[ids[hit]]) {
      hit++;
    }
    for (int i = 0; i < ids.length; i++) {
      int id = ids[i];
      size += held[id] ? 0 : 1;
      held[id] = true;
      key[id] = ((long) nextUse[now][i] << DEPTH_BITS) + i;
      farthest.add(new Entry(key[id], id));
    }
    while (size > capacity) {
      Entry entry = farthest.remove();
      if (held[entry.id] && key[entry.id] == entry.key) { // else an entry of an earlier use
        held[entry.id] = false;
        size--;
      }
    }
    now++;
    return hit;
  }
}
