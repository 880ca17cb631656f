package io.orbitkv.core;

import io.orbitkv.channel.MissReason;
import java.util.Arrays;

/**
 * Takes the rows out of segments whose room is wanted, and of namespaces that were cleared, a few
 * at a time, so that no step is long.
 */
final class SsdEmptier {
  private static final int ROWS_A_STEP = 512;

  private final BlockStore store;
  private final SsdMap map;
  private final SsdSegments segments;
  private final int[] emptying; // of each path, −1 for none
  private final boolean[] wanted;
  private int sweepSegment = -1;
  private int sweepRow;
  private long sweepGeneration;

  long evictions;
  long removedBytes;

  SsdEmptier(SsdConfig config, BlockStore store, SsdMap map, SsdSegments segments) {
    this.store = store;
    this.map = map;
    this.segments = segments;
    this.emptying = new int[config.paths()];
    this.wanted = new boolean[config.paths()];
    Arrays.fill(emptying, -1);
  }

  /** A path needs an empty segment. */
  void wantRoom(int path) {
    wanted[path] = true;
  }

  /** True while there is something to do at once. */
  boolean isBusy() {
    boolean busy = sweepSegment >= 0;
    for (int segment : emptying) {
      busy |= segment >= 0;
    }
    return busy;
  }

  /** Does a bounded part of what is to be done; returns rows taken out. */
  int step() {
    int done = sweepSegment >= 0 ? sweep() : 0;
    for (int path = 0; path < emptying.length; path++) {
      if (emptying[path] < 0) {
        begin(path);
      }
      if (emptying[path] >= 0) {
        done += empty(path);
      }
    }
    return done;
  }

  private void begin(int path) {
    int bad = segments.badToEmpty();
    if (bad >= 0 && segments.path(bad) == path && segments.tryEmpty(bad)) {
      emptying[path] = bad;
    } else if (wanted[path]) {
      wanted[path] = false;
      emptying[path] = segments.free(path) > 0 ? -1 : segments.beginEmptying(path);
    }
  }

  private int empty(int path) {
    int segment = emptying[path];
    int done = 0;
    int next = segments.firstRow(segment);
    while (next != 0 && done < ROWS_A_STEP) {
      int ssd = next - 1;
      next = map.sibling(ssd);
      if (map.space(ssd) >= 0) {
        withdraw(ssd);
        evictions++;
      }
      map.freeRow(ssd);
      done++;
    }
    segments.setFirstRow(segment, next);
    if (next == 0) {
      emptying[path] = -1;
      segments.emptied(segment);
      return Math.max(1, done);
    }
    return done;
  }

  /** Takes a row out of the table; lookups do not find it any more. */
  void withdraw(int ssd) {
    Namespaces.Space space = store.space(map.space(ssd));
    space.ssdBlocks--;
    removedBytes += space.blockBytes;
    forget(ssd, space);
    map.remove(ssd);
  }

  /** Notes that a block is not on SSD any more: in DRAM it may be written again. */
  void forget(int ssd, Namespaces.Space space) {
    int twin = store.find(space, map.hashes(), SsdMap.hashAt(ssd), 32);
    if (twin >= 0) {
      store.clearMark(twin, BlockIndex.SSD_KNOWN);
    } else {
      MissReason reason = space.isCleared() ? MissReason.CLEARED : MissReason.EVICTED;
      store.noteMiss(map.digest(ssd), space, reason);
    }
  }

  /** Begins to take out the rows of cleared namespaces. */
  void beginSweep() {
    sweep(0);
  }

  private void sweep(int segment) {
    sweepSegment = segment;
    sweepRow = segments.firstRow(segment);
    sweepGeneration = segments.generation(segment);
  }

  /** True when the row that comes next is still one of the segment. */
  private boolean isSweeping() {
    return sweepRow != 0
        && segments.isReadable(sweepSegment)
        && segments.generation(sweepSegment) == sweepGeneration;
  }

  private int sweep() {
    int done = 0;
    while (done < ROWS_A_STEP) {
      if (!isSweeping()) {
        done++;
        if (sweepSegment + 1 == segments.count()) {
          sweepSegment = -1;
          return done;
        }
        sweep(sweepSegment + 1);
        continue;
      }
      int ssd = sweepRow - 1;
      sweepRow = map.sibling(ssd);
      int space = map.space(ssd);
      if (space >= 0 && store.space(space).isCleared()) {
        withdraw(ssd);
      }
      done++;
    }
    return done;
  }
}
