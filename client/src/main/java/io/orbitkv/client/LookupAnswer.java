package io.orbitkv.client;

import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.client.LookupResult.Group;
import io.orbitkv.client.LookupResult.Outcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Checks and reads answers to lookups, which the other process wrote. */
final class LookupAnswer {
  private LookupAnswer() {}

  /** True when the answer is as long as its counts need. */
  static boolean isWhole(MemorySegment data, int length) {
    if (length < LookupReply.byteSize(0, 0, 0)) {
      return false;
    }
    int groups = LookupReply.groups(data, 0);
    int hashes = LookupReply.hashes(data, 0);
    int leases = LookupReply.leases(data, 0);
    return groups <= Protocol.MAX_GROUPS
        && hashes >= 0
        && hashes <= Protocol.MAX_HASHES
        && leases >= 0
        && leases <= Protocol.MAX_GROUPS * Protocol.MAX_NAMESPACES
        && LookupReply.byteSize(groups, hashes, leases) == length;
  }

  static void requireWhole(MemorySegment data, int length, int hashes) {
    if (!isWhole(data, length) || LookupReply.hashes(data, 0) != hashes) {
      throw new OrbitKvException(
          Status.INTERNAL, "answer to a lookup does not fit it: bytes=" + length);
    }
  }

  /** Reads a whole answer. */
  static LookupResult read(MemorySegment data, long epoch) {
    int groupCount = LookupReply.groups(data, 0);
    int hashes = LookupReply.hashes(data, 0);
    List<Group> groups = new ArrayList<>(groupCount);
    for (int i = 0; i < groupCount; i++) {
      groups.add(group(data, LookupReply.groupAt(0, i, hashes), hashes));
    }
    List<Lease> leases = new ArrayList<>();
    for (int i = 0; i < LookupReply.leases(data, 0); i++) {
      long at = LookupReply.leaseAt(0, i, groupCount, hashes);
      leases.add(
          new Lease(
              LookupReply.leaseId(data, at),
              epoch,
              LookupReply.leaseNamespace(data, at),
              LookupReply.leaseGroup(data, at),
              LookupReply.leaseBlocks(data, at)));
    }
    Map<MissReason, Integer> misses = new EnumMap<>(MissReason.class);
    for (MissReason reason : MissReason.values()) {
      int count = LookupReply.misses(data, 0, reason);
      if (count > 0) {
        misses.put(reason, count);
      }
    }
    return new LookupResult(outcome(LookupReply.outcome(data, 0)), groups, leases, misses);
  }

  private static Group group(MemorySegment data, long at, int hashes) {
    long[] words = new long[(hashes + 63) >> 6];
    for (int i = 0; i < words.length; i++) {
      words[i] = LookupReply.bits(data, at, i);
    }
    return new Group(
        LookupReply.group(data, at),
        BitSet.valueOf(words),
        LookupReply.prefix(data, at),
        LookupReply.firstMiss(data, at));
  }

  private static Outcome outcome(int code) {
    return switch (code) {
      case LookupReply.READY -> Outcome.READY;
      case LookupReply.LOADING -> Outcome.LOADING;
      case LookupReply.BUSY -> Outcome.BUSY;
      case LookupReply.CANDIDATES -> Outcome.CANDIDATES;
      case LookupReply.MISS -> Outcome.MISS;
      default -> throw new OrbitKvException(Status.INTERNAL, "answer to a lookup: outcome=" + code);
    };
  }
}
