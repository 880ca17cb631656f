package io.orbitkv.bench.planner;

import io.orbitkv.bench.replay.Trace;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A trace whose blocks are numbered from 0 without gaps, in order of first use.
 *
 * @param requests blocks of each request
 * @param blocks number of distinct blocks
 * @param references number of blocks over all requests
 */
record DenseTrace(List<int[]> requests, int blocks, long references) {
  static DenseTrace of(Trace trace) {
    Map<Long, Integer> numbers = new HashMap<>();
    List<int[]> requests = new ArrayList<>();
    long references = 0;
    for (long[] ids : trace.requests()) {
      int[] dense = new int[ids.length];
      for (int i = 0; i < ids.length; i++) {
        dense[i] = numbers.computeIfAbsent(ids[i], id -> numbers.size());
      }
      requests.add(dense);
      references += ids.length;
    }
    return new DenseTrace(List.copyOf(requests), numbers.size(), references);
  }

  /** Share of the references that are hit when the cache plays all requests. */
  double hitRatio(PrefixCache cache) {
    long hits = 0;
    for (int[] request : requests) {
      hits += cache.request(request);
    }
    return references == 0 ? 0 : (double) hits / references;
  }
}
