package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;

/**
 * Watches a sample of the blocks, chosen by their keys, beyond their eviction, and tells {@link
 * ReuseStatistics} what becomes of them. Blocks that were watched and evicted are what keeps the
 * statistics true: the cache sees no reuse of what it does not keep. Sampling by key is that of <a
 * href="https://www.usenix.org/conference/fast15/technical-sessions/presentation/waldspurger">SHARDS</a>.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  tag      high half of the key
 *      4      4  state    {@link ReuseState}; 0 when the place is free
 *      8      4  last     time of the latest use
 *     12      4  counted  time up to which its age was told
 * </pre>
 *
 * Four places a set; the block that was not used for the longest gives way.
 */
final class ReuseSamples {
  private static final int PLACES = 1 << 13;
  private static final int WAYS = 4;
  private static final int SETS = PLACES / WAYS;
  private static final int ENTRY_BYTES = 16;
  private static final long STATE = 4;
  private static final long LAST = 8;
  private static final long COUNTED = 12;
  private static final int SET_BITS = 11;
  private static final int PLACES_A_STEP = 8;
  private static final int BLOCKS_PER_CACHED = 4;

  private final MemorySegment places;
  private final ReuseStatistics statistics;
  private long mask;
  private int hand;

  ReuseSamples(MetadataMemory memory, ReuseStatistics statistics) {
    this.places = memory.allocate((long) PLACES * ENTRY_BYTES);
    this.statistics = statistics;
  }

  /** Fits the sample to a cache of so many blocks: blocks of four times its size are followed. */
  void resize(int blocks) {
    int shift = 0;
    while ((long) BLOCKS_PER_CACHED * blocks > (long) PLACES << shift) {
      shift++;
    }
    mask = (1L << shift) - 1;
  }

  /** True when the block with this key is watched. */
  boolean isSampled(long key) {
    return ((key >>> SET_BITS) & mask) == 0;
  }

  /** A watched block was used; {@code state} is its new one. */
  void used(long key, int state, int now) {
    long at = find(key);
    if (Memory.getInt(places, at + STATE) != 0 && Memory.getInt(places, at) == tag(key)) {
      age(at, now);
      int reuseClass = ReuseState.classOf(Memory.getInt(places, at + STATE));
      statistics.reused(reuseClass, now - Memory.getInt(places, at + LAST));
    }
    Memory.putInt(places, at, tag(key));
    Memory.putInt(places, at + STATE, state & ReuseState.PAST);
    Memory.putInt(places, at + LAST, now);
    Memory.putInt(places, at + COUNTED, now);
  }

  /** The state of a watched block has changed without a use. */
  void changed(long key, int state) {
    long at = find(key);
    if (Memory.getInt(places, at + STATE) != 0 && Memory.getInt(places, at) == tag(key)) {
      Memory.putInt(places, at + STATE, state & ReuseState.PAST);
    }
  }

  private static int tag(long key) {
    return (int) (key >>> 32);
  }

  /** Place of the key, or the one that gives way to it. */
  private long find(long key) {
    long set = (key & (SETS - 1)) * WAYS * ENTRY_BYTES;
    long oldest = set;
    for (long at = set; at < set + WAYS * ENTRY_BYTES; at += ENTRY_BYTES) {
      if (Memory.getInt(places, at + STATE) == 0 || Memory.getInt(places, at) == tag(key)) {
        return at;
      }
      int younger = Memory.getInt(places, at + LAST) - Memory.getInt(places, oldest + LAST);
      oldest = younger < 0 ? at : oldest;
    }
    return oldest;
  }

  private void age(long at, int now) {
    int last = Memory.getInt(places, at + LAST);
    int reuseClass = ReuseState.classOf(Memory.getInt(places, at + STATE));
    statistics.aged(reuseClass, Memory.getInt(places, at + COUNTED) - last, now - last);
    Memory.putInt(places, at + COUNTED, now);
  }

  /** Tells the ages of some watched blocks, in turn. */
  void step(int now) {
    for (int i = 0; i < PLACES_A_STEP; i++) {
      long at = (long) hand * ENTRY_BYTES;
      if (Memory.getInt(places, at + STATE) != 0) {
        age(at, now);
      }
      hand = (hand + 1) & (PLACES - 1);
    }
  }
}
