package io.orbitkv.core;

import java.util.Arrays;

/**
 * Configuration of a core.
 *
 * @param arenaBytes bytes of each arena of the pool; multiples of {@code slabBytes}
 * @param slabBytes bytes of a slab: the unit in which block sizes share the pool, and the largest
 *     block
 * @param queryBudgetBytes most bytes pinned by leases in all
 * @param instanceBudgetBytes most bytes pinned by leases of one instance
 * @param leaseAgeNs age at which a lease ends when its lookup stated none
 * @param memory memory for tables
 */
@SuppressWarnings("ArrayRecordComponent") // read once, by the pool
public record CoreConfig(
    long[] arenaBytes,
    long slabBytes,
    long queryBudgetBytes,
    long instanceBudgetBytes,
    long leaseAgeNs,
    MetadataMemory memory) {
  /** Age of a lease without a stated one: ten minutes. */
  public static final long DEFAULT_LEASE_AGE_NS = 600_000_000_000L;

  private static final long MIN_SLAB = 2L << 20;
  private static final long MAX_SLAB = 64L << 20;

  /** Checks the sizes. */
  public CoreConfig {
    for (long bytes : arenaBytes) {
      if (bytes <= 0 || bytes % slabBytes != 0) {
        throw new IllegalArgumentException(
            "arena bytes=" + bytes + " are no multiple of slab bytes=" + slabBytes);
      }
    }
    long pool = Arrays.stream(arenaBytes).sum();
    if (instanceBudgetBytes <= 0
        || instanceBudgetBytes > queryBudgetBytes
        || queryBudgetBytes > pool) {
      throw new IllegalArgumentException(
          "query budget: instance="
              + instanceBudgetBytes
              + ", all="
              + queryBudgetBytes
              + ", pool="
              + pool
              + "; the rule is 0 < instance <= all <= pool");
    }
  }

  /** Slab size for a pool: a sixty-fourth of it, as a power of two between 2 MiB and 64 MiB. */
  public static long slabBytesFor(long poolBytes) {
    return Math.clamp(Long.highestOneBit(Math.max(1, poolBytes / 64)), MIN_SLAB, MAX_SLAB);
  }

  /** Arenas of equal size for a pool; the pool is cut down to whole slabs. */
  public static long[] arenas(long poolBytes, int arenas) {
    long slab = slabBytesFor(poolBytes);
    long[] bytes = new long[arenas];
    Arrays.fill(bytes, poolBytes / arenas / slab * slab);
    return bytes;
  }
}
