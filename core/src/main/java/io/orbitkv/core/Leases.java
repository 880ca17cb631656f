package io.orbitkv.core;

import java.util.ArrayList;
import java.util.List;

/**
 * All live leases. A lease ends once: by use, release, cancel, age, or the end of the session that
 * asked.
 */
final class Leases {
  /** Most live leases. */
  static final int MAX_LEASES = 1 << 16;

  /** Most queries with an identity whose leases live, over all sessions. */
  static final int MAX_QUERIES = 1024;

  /**
   * How long a query is remembered after its latest answer. Its leases go on without it, and still
   * end with a cancel or a newer revision.
   */
  static final long REPLY_LIFETIME_NS = 60_000_000_000L;

  private static final int PLACE_BITS = 16;

  private final BlockStore store;
  private final IntArrays arrays;
  private final long budgetBytes;
  private final long instanceBudgetBytes;
  private final List<Lease> places = new ArrayList<>();
  private final int[] free = new int[MAX_LEASES];
  private int freeCount;
  private int live;
  private int openQueries;
  private long bytes;
  private long nextSerial = 1;
  private long earliestDeadlineNs = Long.MAX_VALUE;
  private long earliestQueryEndNs = Long.MAX_VALUE;
  private long nextQuerySerial = 1;

  /** Queries forgotten for their age. */
  long queriesExpired;

  Leases(CoreConfig config, BlockStore store, IntArrays arrays) {
    this.store = store;
    this.arrays = arrays;
    this.budgetBytes = config.queryBudgetBytes();
    this.instanceBudgetBytes = config.instanceBudgetBytes();
  }

  /**
   * Blocks of so many bytes that the budgets still allow to lease in so many namespaces; at most
   * {@code wanted}.
   */
  int affordable(Instance instance, int namespaces, long blockBytes, int wanted) {
    if (live + namespaces > MAX_LEASES) {
      return 0;
    }
    long left = Math.min(budgetBytes - bytes, instanceBudgetBytes - instance.leaseBytes);
    return (int) Math.min(wanted, Math.max(0, left) / blockBytes);
  }

  /** Pins the first {@code count} rows under a new lease. {@code rows} passes to the lease. */
  Lease grant(
      Session asker, Namespaces.Space space, int[] rows, int count, long nowNs, long deadlineNs) {
    Lease lease = freeCount > 0 ? places.get(free[--freeCount]) : newPlace();
    lease.id = nextSerial++ << PLACE_BITS | lease.place;
    lease.asker = asker;
    lease.instance = asker.instance;
    lease.space = space;
    lease.rows = fit(rows, count);
    lease.count = count;
    lease.bytes = (long) count * space.size.slotBytes;
    lease.createdNs = nowNs;
    lease.deadlineNs = deadlineNs;
    lease.queryId = 0;
    lease.revision = 0;
    for (int i = 0; i < count; i++) {
      store.pin(lease.rows[i]);
    }
    asker.leases++;
    lease.older = asker.newestLease;
    if (lease.older != null) {
      lease.older.newer = lease;
    }
    asker.newestLease = lease;
    asker.instance.leaseBytes += lease.bytes;
    bytes += lease.bytes;
    live++;
    earliestDeadlineNs = Math.min(earliestDeadlineNs, deadlineNs);
    return lease;
  }

  /** A lease may live long: it keeps no more than its rows need. */
  private int[] fit(int[] rows, int count) {
    if (rows.length <= 2 * count || rows.length <= 16) {
      return rows;
    }
    int[] fitting = arrays.take(count);
    System.arraycopy(rows, 0, fitting, 0, count);
    arrays.give(rows);
    return fitting;
  }

  private Lease newPlace() {
    Lease lease = new Lease(places.size());
    places.add(lease);
    return lease;
  }

  /** The live lease with this id, or null. */
  Lease find(long id) {
    int place = (int) id & (MAX_LEASES - 1);
    if (place >= places.size()) {
      return null;
    }
    Lease lease = places.get(place);
    return lease.isLive() && lease.id == id ? lease : null;
  }

  /** Ends a lease whose pins pass to an operation; the rows are the caller's now. */
  int[] consume(Lease lease) {
    int[] rows = lease.rows;
    forget(lease);
    return rows;
  }

  /** Ends a lease and gives its pins back. */
  void end(Lease lease) {
    for (int i = 0; i < lease.count; i++) {
      store.unpin(lease.rows[i]);
    }
    arrays.give(lease.rows);
    forget(lease);
  }

  private void forget(Lease lease) {
    Session asker = lease.asker;
    asker.leases--;
    unlink(asker, lease);
    asker.instance.leaseBytes -= lease.bytes;
    bytes -= lease.bytes;
    live--;
    if (lease.queryId != 0) {
      leaveQuery(asker, lease);
    }
    lease.asker = null;
    lease.instance = null;
    lease.space = null;
    lease.rows = null;
    free[freeCount++] = lease.place;
  }

  private static void unlink(Session asker, Lease lease) {
    if (lease.newer == null) {
      asker.newestLease = lease.older;
    } else {
      lease.newer.older = lease.older;
    }
    if (lease.older != null) {
      lease.older.newer = lease.newer;
    }
    lease.newer = null;
    lease.older = null;
  }

  /** Makes a lease part of a query, which lives as long as one of its leases. */
  void joinQuery(Lease lease, int query, long queryId, int revision) {
    lease.queryId = queryId;
    lease.querySerial = lease.asker.querySerials[query];
    lease.revision = revision;
    lease.asker.queryLeases[query]++;
  }

  private void leaveQuery(Session asker, Lease lease) {
    int query = asker.findQuery(lease.queryId);
    if (query < 0 || asker.querySerials[query] != lease.querySerial) {
      asker.detachedLeases--;
    } else if (--asker.queryLeases[query] == 0) {
      closeQuery(asker, query);
    }
  }

  /**
   * Remembers a query of a session, from now for the lifetime of a reply; false when the session or
   * the Manager remembers too many.
   */
  boolean openQuery(Session asker, long queryId, int revision, long nowNs) {
    int query = asker.findQuery(queryId);
    if (query < 0) {
      if (asker.queries == Session.MAX_QUERIES || openQueries == MAX_QUERIES) {
        return false;
      }
      query = asker.addQuery(queryId, nextQuerySerial++);
      openQueries++;
    }
    asker.queryRevisions[query] = revision;
    asker.queryEndsNs[query] = nowNs + REPLY_LIFETIME_NS;
    earliestQueryEndNs = Math.min(earliestQueryEndNs, asker.queryEndsNs[query]);
    return true;
  }

  /** Forgets a query. */
  void closeQuery(Session asker, int query) {
    asker.removeQuery(query);
    openQueries--;
  }

  /** Ends the leases of a session's query up to a revision. */
  void endQuery(Session asker, long queryId, int revision) {
    int query = asker.findQuery(queryId);
    int left = asker.detachedLeases + (query < 0 ? 0 : asker.queryLeases[query]);
    Lease lease = asker.newestLease;
    while (left > 0 && lease != null) {
      Lease next = lease.older;
      if (lease.queryId == queryId) {
        left--;
        if (lease.revision <= revision) {
          end(lease);
        }
      }
      lease = next;
    }
  }

  /** Ends the leases that a session asked for. */
  void endAsker(Session asker) {
    while (asker.newestLease != null) {
      end(asker.newestLease);
    }
  }

  /** Ends the leases that are too old. */
  void expire(long nowNs) {
    if (nowNs < earliestDeadlineNs) {
      return;
    }
    earliestDeadlineNs = Long.MAX_VALUE;
    for (int i = 0; i < places.size(); i++) {
      Lease lease = places.get(i);
      if (lease.isLive() && lease.deadlineNs <= nowNs) {
        end(lease);
      } else if (lease.isLive()) {
        earliestDeadlineNs = Math.min(earliestDeadlineNs, lease.deadlineNs);
      }
    }
  }

  /** Forgets the queries whose latest answer is too old; their leases stay. */
  void expireQueries(Session[] sessions, long nowNs) {
    if (nowNs < earliestQueryEndNs) {
      return;
    }
    earliestQueryEndNs = Long.MAX_VALUE;
    for (Session session : sessions) {
      for (int query = session == null ? -1 : session.queries - 1; query >= 0; query--) {
        if (session.queryEndsNs[query] <= nowNs) {
          session.detachedLeases += session.queryLeases[query];
          closeQuery(session, query);
          queriesExpired++;
        } else {
          earliestQueryEndNs = Math.min(earliestQueryEndNs, session.queryEndsNs[query]);
        }
      }
    }
  }

  long oldestAgeNs(long nowNs) {
    long oldest = 0;
    for (Lease lease : places) {
      if (lease.isLive()) {
        oldest = Math.max(oldest, nowNs - lease.createdNs);
      }
    }
    return oldest;
  }

  int live() {
    return live;
  }

  /** All leases that were ever given out, and those that are live among them. */
  List<Lease> places() {
    return places;
  }

  long bytes() {
    return bytes;
  }
}
