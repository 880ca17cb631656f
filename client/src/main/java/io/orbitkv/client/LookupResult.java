package io.orbitkv.client;

import io.orbitkv.channel.MissReason;
import java.util.BitSet;
import java.util.List;
import java.util.Map;

/**
 * Answer to a lookup.
 *
 * @param outcome what was found
 * @param groups what is present of each group
 * @param leases leases, one for each namespace and group with blocks
 * @param misses how many blocks are missing, by reason
 */
public record LookupResult(
    Outcome outcome, List<Group> groups, List<Lease> leases, Map<MissReason, Integer> misses) {
  /** Outcome of a lookup. */
  public enum Outcome {
    /** At least one lease. */
    READY,
    /** Blocks are on their way from another tier: ask again. */
    LOADING,
    /** Refused by a budget for now. */
    BUSY,
    /** A hint without leases. */
    CANDIDATES,
    /** Nothing restorable. */
    MISS
  }

  /**
   * Blocks of one group.
   *
   * @param group group id
   * @param present bit i is set when block i is present in every namespace asked for
   * @param prefix blocks before the first missing one
   * @param firstMiss reason of the first missing block
   */
  public record Group(int group, BitSet present, int prefix, MissReason firstMiss) {}

  /** Copies the collections. */
  public LookupResult {
    groups = List.copyOf(groups);
    leases = List.copyOf(leases);
    misses = Map.copyOf(misses);
  }

  /** Blocks before the first missing one of the first group. */
  public int prefix() {
    return groups.isEmpty() ? 0 : groups.getFirst().prefix();
  }
}
