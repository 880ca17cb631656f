package io.orbitkv.core;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Answers lookups. Scratch arrays are kept, so that a lookup allocates nothing but the reply's
 * place in the ring.
 */
final class Lookups {
  /** Code of a block that is on SSD and not in DRAM: this less its SSD row. */
  private static final int ON_SSD = -2;

  /** Age at which what a query holds while it is being loaded is let go. */
  private static final long LOADING_HOLD_NS = 60_000_000_000L;

  /** Most positions of one lookup: namespaces times groups times hashes. */
  static final int MAX_POSITIONS = 1 << 18;

  private final BlockStore store;
  private final Leases leases;
  private final Namespaces namespaces;
  private final IntArrays arrays;
  private final CoreOutput output;
  private final long leaseAgeNs;

  private final LookupRequest request = new LookupRequest();
  private final Namespaces.Namespace[] asked = new Namespaces.Namespace[Protocol.MAX_NAMESPACES];
  private final int[][] rows = new int[Protocol.MAX_NAMESPACES][];
  private final int[] groups = new int[Protocol.MAX_GROUPS];
  private final long[][] bits = new long[Protocol.MAX_GROUPS][];
  private final int[] present = new int[Protocol.MAX_GROUPS];
  private final int[] prefix = new int[Protocol.MAX_GROUPS];
  private final MissReason[] firstMiss = new MissReason[Protocol.MAX_GROUPS];
  private final int[] misses = new int[MissReason.COUNT];
  private final Lease[] granted = new Lease[Protocol.MAX_NAMESPACES * Protocol.MAX_GROUPS];
  private final int[] grantedNamespace = new int[granted.length];
  private final SsdTier ssd; // null without one
  private int groupCount;
  private int loading;
  private Status refusal = Status.OK;
  private int grantedCount;

  long lookups;
  long blocks;
  long hits;
  final long[] missesTotal = new long[MissReason.COUNT];

  Lookups(
      CoreConfig config,
      BlockStore store,
      Leases leases,
      Namespaces namespaces,
      IntArrays arrays,
      CoreOutput output,
      SsdTier ssd) {
    this.ssd = ssd;
    this.store = store;
    this.leases = leases;
    this.namespaces = namespaces;
    this.arrays = arrays;
    this.output = output;
    this.leaseAgeNs = config.leaseAgeNs();
  }

  /** Executes a lookup and replies. */
  void execute(
      Session session, Command command, MemorySegment data, int length, long nowNs, Command reply) {
    request.wrap(data, 0, length);
    reset();
    long positions =
        (long) request.namespaces() * request.hashes() * Long.bitCount(request.groupMask());
    if (positions > MAX_POSITIONS) {
      refuse(session, command, Status.LIMIT, reply);
      return;
    }
    long queryId = request.queryId();
    if (queryId != 0 && !admitQuery(session, queryId, request.revision(), nowNs)) {
      refuse(session, command, refusal, reply);
      return;
    }
    for (int n = 0; n < request.namespaces(); n++) {
      asked[n] = namespaces.find(data, request.namespace(n));
    }
    long deadlineNs = nowNs + ageNs();
    for (long mask = request.groupMask(); mask != 0; mask &= mask - 1) {
      lookUpGroup(session, Long.numberOfTrailingZeros(mask), data, nowNs, deadlineNs);
    }
    if (queryId != 0) {
      settleQuery(session, queryId);
    }
    if (loading == 0) {
      countAnswer(session);
    } else if (queryId == 0) {
      endGranted(); // nothing tells the next question from another's
    }
    answer(session, command, reply);
  }

  /**
   * Counts a lookup once, however often it was told to ask again. One for a hint is not counted: it
   * restores nothing, so it is no hit and no miss.
   */
  private void countAnswer(Session session) {
    if (request.mode() == LookupRequest.CANDIDATES) {
      return;
    }
    lookups++;
    for (int reason = 0; reason < MissReason.COUNT; reason++) {
      missesTotal[reason] += misses[reason];
    }
    for (int g = 0; g < groupCount; g++) {
      int found = request.mode() == LookupRequest.PREFIX ? prefix[g] : present[g];
      blocks += request.hashes();
      hits += found;
      session.askedBlocks += request.hashes();
      session.foundBlocks += found;
    }
  }

  private void endGranted() {
    for (int i = 0; i < grantedCount; i++) {
      leases.end(granted[i]);
    }
    Arrays.fill(granted, 0, grantedCount, null);
    grantedCount = 0;
  }

  private void refuse(Session session, Command command, Status status, Command reply) {
    reply.set(command.opcode, status.code(), command.requestId, command.epoch, 0, 0);
    output.reply(session.slot, ChannelDescriptor.QUERY_REPLIES, reply);
  }

  private void reset() {
    groupCount = 0;
    grantedCount = 0;
    loading = 0;
    Arrays.fill(misses, 0);
  }

  private long ageNs() {
    return request.maxLeaseAgeMs() == 0 ? leaseAgeNs : request.maxLeaseAgeMs() * 1_000_000L;
  }

  /**
   * Ends what an older revision was given; false when a newer one was there first, or there is no
   * room.
   */
  private boolean admitQuery(Session session, long queryId, int revision, long nowNs) {
    int query = session.findQuery(queryId);
    if (query >= 0 && session.queryRevisions[query] > revision) {
      refusal = Status.SUPERSEDED;
      return false;
    }
    if (query >= 0 || session.detachedLeases > 0) {
      leases.endQuery(session, queryId, revision);
    }
    if (!leases.openQuery(session, queryId, revision, nowNs)) {
      refusal = Status.LIMIT;
      return false;
    }
    return true;
  }

  private void settleQuery(Session session, long queryId) {
    int query = session.findQuery(queryId);
    for (int i = 0; i < grantedCount; i++) {
      leases.joinQuery(granted[i], query, queryId, request.revision());
    }
    if (grantedCount == 0) {
      leases.closeQuery(session, query);
    }
  }

  private void lookUpGroup(
      Session session, int group, MemorySegment data, long nowNs, long deadlineNs) {
    int g = groupCount++;
    int hashes = request.hashes();
    groups[g] = group;
    firstMiss[g] = MissReason.NONE;
    prepareBits(g, hashes);
    int found = findAll(group, g, data, hashes);
    present[g] = countBits(g);
    prefix[g] = leadingBits(g, hashes);
    if (prefix[g] < hashes) {
      noteMisses(group, g, data, request.mode() == LookupRequest.PREFIX ? found + 1 : hashes);
    }
    if (request.mode() != LookupRequest.CANDIDATES && present[g] > 0) {
      lease(session, group, g, nowNs, deadlineNs);
    }
    giveRows();
  }

  private void prepareBits(int g, int hashes) {
    int words = (hashes + 63) >> 6;
    if (bits[g] == null || bits[g].length < words) {
      bits[g] = new long[Math.max(16, Integer.highestOneBit(words) * 2)];
    }
    Arrays.fill(bits[g], 0, words, -1L);
    if ((hashes & 63) != 0) {
      bits[g][words - 1] = (1L << hashes) - 1;
    }
  }

  /** Intersects the positions over all namespaces; returns how many were looked at in every one. */
  private int findAll(int group, int g, MemorySegment data, int hashes) {
    boolean onlyPrefix = request.mode() == LookupRequest.PREFIX;
    int limit = hashes;
    for (int n = 0; n < request.namespaces(); n++) {
      Namespaces.Space space = asked[n] == null ? null : asked[n].spaces[group];
      rows[n] = arrays.take(hashes);
      int found = 0;
      if (space != null && asked[n].hashBytes == request.hashBytes()) {
        found =
            store.find(
                space, data, request.hash(0), request.hashBytes(), limit, rows[n], onlyPrefix);
        if (ssd != null) {
          found = findOnSsd(space, data, rows[n], found, limit, onlyPrefix);
        }
      }
      for (int i = found; i < limit; i++) {
        rows[n][i] = -1;
      }
      if (onlyPrefix) {
        limit = found;
      } else {
        clearMissing(g, rows[n], hashes);
      }
    }
    if (onlyPrefix) {
      clearFrom(g, limit, hashes);
    }
    return limit;
  }

  /** Goes on where DRAM has no more; returns how many positions were looked at. */
  private int findOnSsd(
      Namespaces.Space space,
      MemorySegment data,
      int[] out,
      int found,
      int limit,
      boolean onlyPrefix) {
    int hashBytes = request.hashBytes();
    for (int i = onlyPrefix ? found : 0; i < limit; i++) {
      if (i < found && out[i] >= 0) {
        continue;
      }
      int row = i < found ? -1 : store.find(space, data, request.hash(i), hashBytes);
      if (row < 0) {
        int onSsd = ssd.find(space, data, request.hash(i), hashBytes);
        row = onSsd < 0 ? -1 : ON_SSD - onSsd;
      }
      if (row == -1 && onlyPrefix) {
        return i;
      }
      out[i] = row;
    }
    return limit;
  }

  private void clearMissing(int g, int[] found, int hashes) {
    for (int i = 0; i < hashes; i++) {
      if (found[i] == -1) {
        bits[g][i >> 6] &= ~(1L << i);
      }
    }
  }

  private void clearFrom(int g, int from, int hashes) {
    int words = (hashes + 63) >> 6;
    int word = from >> 6;
    if (word < words) {
      bits[g][word] &= (1L << from) - 1;
      Arrays.fill(bits[g], word + 1, words, 0);
    }
  }

  private int countBits(int g) {
    int sum = 0;
    for (int word = 0; word < (request.hashes() + 63) >> 6; word++) {
      sum += Long.bitCount(bits[g][word]);
    }
    return sum;
  }

  private int leadingBits(int g, int hashes) {
    int word = 0;
    while (word < (hashes + 63) >> 6 && bits[g][word] == -1L) {
      word++;
    }
    int tail = word < (hashes + 63) >> 6 ? Long.numberOfTrailingZeros(~bits[g][word]) : 0;
    return Math.min(hashes, (word << 6) + tail);
  }

  private boolean isPresent(int g, int i) {
    return (bits[g][i >> 6] & 1L << i) != 0;
  }

  private void noteMisses(int group, int g, MemorySegment data, int upTo) {
    for (int i = prefix[g]; i < upTo; i++) {
      if (!isPresent(g, i)) {
        MissReason reason = missReason(group, data, i);
        count(reason);
        firstMiss[g] = firstMiss[g] == MissReason.NONE ? reason : firstMiss[g];
      }
    }
  }

  private MissReason missReason(int group, MemorySegment data, int i) {
    Namespaces.Space space = spaceThatMisses(group, i);
    long hash = request.hash(i);
    int hashBytes = request.hashBytes();
    if (ssd != null && space != null && ssd.holdsUnreachable(space, data, hash, hashBytes)) {
      return MissReason.TIER;
    }
    return store.missReason(space == null ? -1 : space.id, data, hash, hashBytes);
  }

  private Namespaces.Space spaceThatMisses(int group, int i) {
    for (int n = 0; n < request.namespaces(); n++) {
      Namespaces.Space space = asked[n] == null ? null : asked[n].spaces[group];
      if (space == null || rows[n] == null || rows[n][i] == -1) {
        return space;
      }
    }
    return null;
  }

  private void count(MissReason reason) {
    misses[reason.code()]++;
  }

  private void lease(Session session, int group, int g, long nowNs, long deadlineNs) {
    long blockBytes = 0;
    for (int n = 0; n < request.namespaces(); n++) {
      blockBytes += asked[n].spaces[group].size.slotBytes;
    }
    int wanted = request.mode() == LookupRequest.PREFIX ? prefix[g] : present[g];
    int allowed = leases.affordable(session.instance, request.namespaces(), blockBytes, wanted);
    if (allowed < wanted) {
      cutTo(g, allowed, MissReason.BUDGET);
    }
    if (ssd != null && allowed > 0) {
      long holdUntilNs = Math.min(deadlineNs, nowNs + LOADING_HOLD_NS);
      if (load(session, group, g, nowNs, holdUntilNs)) {
        return;
      }
      allowed = present[g];
    }
    if (allowed == 0) {
      return;
    }
    for (int n = 0; n < request.namespaces(); n++) {
      int count = compact(g, rows[n], request.hashes());
      grantedNamespace[grantedCount] = n;
      granted[grantedCount++] =
          leases.grant(session, asked[n].spaces[group], rows[n], count, nowNs, deadlineNs);
      if (ssd != null) {
        ssd.leased(rows[n], count);
      }
      rows[n] = null; // the lease has it
    }
  }

  /**
   * Loads what is on SSD, while leases that nobody is told of hold what is in DRAM.
   *
   * @return false when nothing is being loaded: what is left of the positions is in DRAM
   */
  private boolean load(Session session, int group, int g, long nowNs, long holdUntilNs) {
    if (!hasAnyOnSsd(g)) {
      return false;
    }
    int firstHold = grantedCount;
    for (int n = 0; n < request.namespaces(); n++) {
      hold(session, group, g, n, nowNs, holdUntilNs);
    }
    int loads = beginLoads(g, nowNs);
    if (loads == 0) {
      while (grantedCount > firstHold) {
        leases.end(granted[--grantedCount]);
        granted[grantedCount] = null;
      }
    }
    loading += loads;
    return loads > 0;
  }

  private boolean hasAnyOnSsd(int g) {
    for (int n = 0; n < request.namespaces(); n++) {
      for (int i = 0; i < request.hashes(); i++) {
        if (isPresent(g, i) && rows[n][i] <= ON_SSD) {
          return true;
        }
      }
    }
    return false;
  }

  private void hold(Session session, int group, int g, int n, long nowNs, long untilNs) {
    int[] resident = arrays.take(request.hashes());
    int count = 0;
    for (int i = 0; i < request.hashes(); i++) {
      if (isPresent(g, i) && rows[n][i] >= 0) {
        resident[count++] = rows[n][i];
      }
    }
    if (count == 0) {
      arrays.give(resident);
      return;
    }
    grantedNamespace[grantedCount] = n;
    granted[grantedCount++] =
        leases.grant(session, asked[n].spaces[group], resident, count, nowNs, untilNs);
    ssd.leased(granted[grantedCount - 1].rows, count);
  }

  /** Begins loads in the order of the positions; those behind the first refusal are cut off. */
  private int beginLoads(int g, long nowNs) {
    int loads = 0;
    int kept = 0;
    for (int i = 0; i < request.hashes(); i++) {
      if (!isPresent(g, i)) {
        continue;
      }
      for (int n = 0; n < request.namespaces(); n++) {
        if (rows[n][i] > ON_SSD) {
          continue;
        }
        int before = i > 0 ? rows[n][i - 1] : -1;
        int row = ssd.load(ON_SSD - rows[n][i], Math.max(-1, before), nowNs);
        if (row < 0) {
          cutTo(g, kept, row == SsdLoads.NO_ROOM ? MissReason.BUDGET : MissReason.TIER);
          return loads;
        }
        rows[n][i] = row; // not resident yet: the parent of the next
        loads++;
      }
      kept++;
    }
    return loads;
  }

  /** Leaves the first {@code allowed} present positions; the others are missing for a reason. */
  private void cutTo(int g, int allowed, MissReason reason) {
    int kept = 0;
    boolean first = true;
    for (int i = 0; i < request.hashes(); i++) {
      if (isPresent(g, i) && kept++ >= allowed) {
        bits[g][i >> 6] &= ~(1L << i);
        count(reason);
        if (first && i < prefix[g]) {
          prefix[g] = i;
          firstMiss[g] = reason;
        }
        first = false;
      }
    }
    present[g] = allowed;
  }

  private int compact(int g, int[] found, int hashes) {
    int count = 0;
    for (int word = 0; word < (hashes + 63) >> 6; word++) {
      for (long set = bits[g][word]; set != 0; set &= set - 1) {
        found[count++] = found[(word << 6) + Long.numberOfTrailingZeros(set)];
      }
    }
    return count;
  }

  private void giveRows() {
    for (int n = 0; n < request.namespaces(); n++) {
      if (rows[n] != null) {
        arrays.give(rows[n]);
        rows[n] = null;
      }
    }
  }

  private int outcome() {
    if (request.mode() == LookupRequest.CANDIDATES) {
      return LookupReply.CANDIDATES;
    }
    if (loading > 0) {
      return LookupReply.LOADING;
    }
    if (grantedCount > 0) {
      return LookupReply.READY;
    }
    return misses[MissReason.BUDGET.code()] > 0 ? LookupReply.BUSY : LookupReply.MISS;
  }

  private void answer(Session session, Command command, Command reply) {
    int hashes = request.hashes();
    int shown = loading > 0 ? 0 : grantedCount;
    long bytes = LookupReply.byteSize(groupCount, hashes, shown);
    ByteRing.Producer ring = output.replyBytes(session.slot, ChannelDescriptor.QUERY_REPLIES);
    long at = bytes <= Protocol.MAX_SPAN_BYTES ? ring.tryClaim((int) bytes) : -1;
    if (at < 0) { // the answer can not be delivered, so its leases come back by themselves
      for (int i = 0; i < grantedCount; i++) {
        leases.end(granted[i]);
      }
      reply.set(command.opcode, Status.LIMIT.code(), command.requestId, command.epoch, 0, 0);
    } else {
      reply.set(command.opcode, Status.OK.code(), command.requestId, command.epoch, 0, 0);
      write(ring.memory(), at, hashes, shown);
      ring.commit((int) bytes, reply);
    }
    Arrays.fill(granted, 0, grantedCount, null);
    output.reply(session.slot, ChannelDescriptor.QUERY_REPLIES, reply);
  }

  private void write(MemorySegment into, long at, int hashes, int shown) {
    LookupReply.writeHeader(
        into,
        at,
        outcome(),
        groupCount,
        hashes,
        shown,
        (int) Math.min(Integer.MAX_VALUE, ageNs() / 1_000_000));
    for (int reason = 0; reason < MissReason.COUNT; reason++) {
      LookupReply.putMisses(into, at, reason, misses[reason]);
    }
    for (int g = 0; g < groupCount; g++) {
      long groupAt = LookupReply.groupAt(at, g, hashes);
      LookupReply.writeGroup(into, groupAt, groups[g], firstMiss[g].code(), present[g], prefix[g]);
      for (int word = 0; word < (hashes + 63) >> 6; word++) {
        LookupReply.putBits(into, groupAt, word, bits[g][word]);
      }
    }
    for (int i = 0; i < shown; i++) {
      Lease lease = granted[i];
      LookupReply.writeLease(
          into,
          LookupReply.leaseAt(at, i, groupCount, hashes),
          lease.id,
          lease.count,
          grantedNamespace[i],
          lease.space.group);
    }
  }
}
