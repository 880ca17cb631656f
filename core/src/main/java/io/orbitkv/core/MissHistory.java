package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import io.orbitkv.channel.MissReason;
import java.lang.foreign.MemorySegment;

/**
 * Remembers, for a bounded number of block hashes, what last happened to them, so that a miss can
 * say why. A later hash with the same place replaces an earlier one.
 *
 * <pre>
 * bits    field of the first eight bytes of a place
 *  0-3    reason, code of {@link MissReason}; NONE while the block is resident
 *  4-31   space
 * 32-63   fingerprint, never 0
 *
 * offset  field
 *      8  second of the record
 * </pre>
 */
final class MissHistory {
  private static final int PLACES = 1 << 20;
  private static final int SPACE_MASK = 0xfff_ffff;

  private static final long NS_PER_SECOND = 1_000_000_000L;

  private static final int PLACE_BYTES = 16;
  private static final int SECOND = 8;

  private final MemorySegment places;
  private final ScatteredWrites writes;
  private int nowSecond;

  MissHistory(MetadataMemory memory) {
    this.places = memory.allocate((long) PLACE_BYTES * PLACES);
    this.writes = new ScatteredWrites(places);
  }

  /** Time of what is recorded from now on. */
  void setNow(long nowNs) {
    nowSecond = (int) (nowNs / NS_PER_SECOND);
  }

  /** Seconds since the last record of a hash; meaningful where {@link #reason} knows it. */
  int ageSeconds(long digest) {
    writes.flush();
    return nowSecond - Memory.getInt(places, place(digest) + SECOND);
  }

  private static long place(long digest) {
    return PLACE_BYTES * (digest & (PLACES - 1));
  }

  private static long fingerprint(long digest) {
    return (digest >>> 32 | 1) << 32;
  }

  void record(long digest, int space, MissReason reason) {
    long place = place(digest);
    writes.put(place, fingerprint(digest) | (long) (space & SPACE_MASK) << 4 | reason.code());
    writes.put(place + SECOND, nowSecond);
  }

  /** Why a block that is not resident is missing. */
  MissReason reason(long digest, int space) {
    writes.flush();
    long entry = Memory.getLong(places, place(digest));
    if ((entry & 0xffff_ffff_0000_0000L) != fingerprint(digest)) {
      return MissReason.NEVER_STORED;
    }
    if ((entry >>> 4 & SPACE_MASK) != (space & SPACE_MASK)) {
      return MissReason.OTHER_NAMESPACE;
    }
    MissReason reason = MissReason.of((int) (entry & 15));
    return reason == MissReason.NONE ? MissReason.EVICTED : reason;
  }
}
