package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;

/**
 * Remembers the past of a bounded number of evicted blocks, so that one that comes back is no
 * stranger. A later block with the same place replaces an earlier one.
 *
 * <pre>
 * bits    field
 *  0-11   past of the block, see {@link ReuseState}; 0 when the place is free
 * 12-31   tag, high bits of the key
 * 32-63   time of its latest use
 * </pre>
 */
final class ReuseGhosts {
  private static final int PLACES = 1 << 20;
  private static final int TAG_MASK = ~ReuseState.PAST;

  private final MemorySegment places;
  private final ScatteredWrites writes;

  ReuseGhosts(MetadataMemory memory) {
    this.places = memory.allocate((long) PLACES * Long.BYTES);
    this.writes = new ScatteredWrites(places);
  }

  private static long place(long key) {
    return (key & (PLACES - 1)) * Long.BYTES;
  }

  void remember(long key, int state, int last) {
    int low = ((int) (key >>> 32) & TAG_MASK) | (state & ReuseState.PAST);
    writes.put(place(key), ((long) last << 32) | (low & 0xffff_ffffL));
  }

  /**
   * What is remembered of the block, 0 for nothing: its past in the low half, its latest use above.
   */
  long recall(long key) {
    writes.flush();
    long entry = Memory.getLong(places, place(key));
    boolean same = ((int) entry & TAG_MASK) == ((int) (key >>> 32) & TAG_MASK);
    int past = (int) entry & ReuseState.PAST;
    return same && past != 0 ? (entry & ~0xffff_ffffL) | past : 0;
  }
}
