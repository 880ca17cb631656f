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
 *
 * Places are random and many, so each record costs a cache miss. Some records are kept back and
 * written in one go, which lets their misses overlap; every read writes them first.
 */
final class MissHistory {
  private static final int PLACES = 1 << 20;
  private static final int SPACE_MASK = 0xfff_ffff;

  private static final long NS_PER_SECOND = 1_000_000_000L;

  private static final int PLACE_BYTES = 16;
  private static final int SECOND = 8;
  private static final int KEPT_BACK = 64;

  private final MemorySegment places;
  private final long[] keptPlaces = new long[KEPT_BACK];
  private final long[] keptEntries = new long[KEPT_BACK];
  private int kept;
  private int nowSecond;

  MissHistory(MetadataMemory memory) {
    this.places = memory.allocate((long) PLACE_BYTES * PLACES);
  }

  /** Time of what is recorded from now on. */
  void setNow(long nowNs) {
    int second = (int) (nowNs / NS_PER_SECOND);
    if (second != nowSecond) {
      write();
      nowSecond = second;
    }
  }

  /** Seconds since the last record of a hash; meaningful where {@link #reason} knows it. */
  int ageSeconds(long digest) {
    write();
    return nowSecond - Memory.getInt(places, place(digest) + SECOND);
  }

  private static long place(long digest) {
    return PLACE_BYTES * (digest & (PLACES - 1));
  }

  private static long fingerprint(long digest) {
    return (digest >>> 32 | 1) << 32;
  }

  void record(long digest, int space, MissReason reason) {
    keptPlaces[kept] = place(digest);
    keptEntries[kept] = fingerprint(digest) | (long) (space & SPACE_MASK) << 4 | reason.code();
    kept++;
    if (kept == KEPT_BACK) {
      write();
    }
  }

  private void write() {
    for (int i = 0; i < kept; i++) {
      Memory.putLong(places, keptPlaces[i], keptEntries[i]);
      Memory.putInt(places, keptPlaces[i] + SECOND, nowSecond);
    }
    kept = 0;
  }

  /** Why a block that is not resident is missing. */
  MissReason reason(long digest, int space) {
    write();
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
