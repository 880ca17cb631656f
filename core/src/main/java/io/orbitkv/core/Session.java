package io.orbitkv.core;

import io.orbitkv.channel.GrantTable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/** What the core knows of one session. */
final class Session {
  /** Most queries with an identity whose leases live. */
  static final int MAX_QUERIES = 128;

  /** Most bytes of metadata of operations that are not settled. */
  static final long MAX_METADATA_BYTES = 64L << 20;

  final int slot;
  final GrantTable table;
  final Instance instance;
  final String client;
  final int pid;
  final boolean mayPublish;
  final PlanBank bank = new PlanBank();
  final Operation[] operations = new Operation[GrantTable.RECORDS];
  final long[] lastGeneration = new long[GrantTable.RECORDS];
  final ArrayDeque<Operation> waitingForBank = new ArrayDeque<>();
  final List<Registration> registrations = new ArrayList<>();
  final long[] queryIds = new long[MAX_QUERIES];
  final int[] queryRevisions = new int[MAX_QUERIES];
  final int[] queryLeases = new int[MAX_QUERIES];
  final long[] querySerials = new long[MAX_QUERIES];
  final long[] queryEndsNs = new long[MAX_QUERIES];
  int queries;
  int leases;

  /** The latest of the leases that it asked for; the others follow by {@link Lease#older}. */
  Lease newestLease;

  /** Leases of queries that are not remembered any more. */
  int detachedLeases;

  int unsettled;

  /** When a part was granted last. */
  long lastGrantNs;

  long metadataBytes;
  long drainsSeen;
  boolean lost;
  boolean exited;

  /** When it was lost. */
  long lostNs;

  /** Blocks that its lookups asked for, and those that they found. */
  long askedBlocks;

  long foundBlocks;

  /** Blocks of its restores that drained whole, and their bytes. */
  long restoredBlocks;

  long restoredBytes;

  /** Blocks of its publishes that were sealed, and their bytes. */
  long publishedBlocks;

  long publishedBytes;

  Session(
      int slot, GrantTable table, Instance instance, String client, int pid, boolean mayPublish) {
    this.slot = slot;
    this.table = table;
    this.instance = instance;
    this.client = client;
    this.pid = pid;
    this.mayPublish = mayPublish;
  }

  /** Place of a query in the query arrays, or -1. */
  int findQuery(long queryId) {
    for (int i = 0; i < queries; i++) {
      if (queryIds[i] == queryId) {
        return i;
      }
    }
    return -1;
  }

  /**
   * Remembers a query without leases and returns its place.
   *
   * @param serial number that no other query has
   */
  int addQuery(long queryId, long serial) {
    queryIds[queries] = queryId;
    queryLeases[queries] = 0;
    querySerials[queries] = serial;
    return queries++;
  }

  /** Forgets a query; the last one takes its place. */
  void removeQuery(int place) {
    queries--;
    queryIds[place] = queryIds[queries];
    queryRevisions[place] = queryRevisions[queries];
    queryLeases[place] = queryLeases[queries];
    querySerials[place] = querySerials[queries];
    queryEndsNs[place] = queryEndsNs[queries];
  }
}
