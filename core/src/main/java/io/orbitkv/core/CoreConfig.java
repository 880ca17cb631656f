package io.orbitkv.core;

import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Protocol;
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
 * @param partEntries most blocks of one part of a plan; larger operations are granted part by part
 * @param memory memory for tables
 */
@SuppressWarnings("ArrayRecordComponent") // read once, by the pool
public record CoreConfig(
    long[] arenaBytes,
    long slabBytes,
    long queryBudgetBytes,
    long instanceBudgetBytes,
    long leaseAgeNs,
    int partEntries,
    MetadataMemory memory) {
  /** Age of a lease without a stated one: ten minutes. */
  public static final long DEFAULT_LEASE_AGE_NS = 600_000_000_000L;

  /** Blocks of one part: a quarter of the plan bank, so that no operation keeps it to itself. */
  public static final int DEFAULT_PART_ENTRIES = GrantTable.MAX_PLAN_ENTRIES / 4;

  private static final long MIN_SLAB = 2L << 20;
  private static final long MAX_SLAB = 64L << 20;

  /** As the canonical one, with parts of {@link #DEFAULT_PART_ENTRIES}. */
  public CoreConfig(
      long[] arenaBytes,
      long slabBytes,
      long queryBudgetBytes,
      long instanceBudgetBytes,
      long leaseAgeNs,
      MetadataMemory memory) {
    this(
        arenaBytes,
        slabBytes,
        queryBudgetBytes,
        instanceBudgetBytes,
        leaseAgeNs,
        DEFAULT_PART_ENTRIES,
        memory);
  }

  /** Checks the sizes. */
  public CoreConfig {
    int fewest = Protocol.MAX_HASHES / (GrantWord.MAX_PART + 1);
    if (partEntries < fewest || partEntries > GrantTable.MAX_PLAN_ENTRIES) {
      throw new IllegalArgumentException(
          "part entries="
              + partEntries
              + ", allowed="
              + fewest
              + ".."
              + GrantTable.MAX_PLAN_ENTRIES);
    }
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
