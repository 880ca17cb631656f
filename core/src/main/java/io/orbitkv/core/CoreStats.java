package io.orbitkv.core;

import java.util.List;

/**
 * What the core holds and has done, at one moment. Counters end in Total; all else are gauges.
 *
 * @param poolCapacityBytes bytes of all arenas
 * @param poolUsedBytes bytes of all allocations: resident blocks and publishes in flight
 * @param slabsTotal slabs of the pool
 * @param slabsFree slabs that belong to no block size
 * @param residentBlocks blocks that lookups find
 * @param residentBytes their bytes
 * @param unsealedBlocks blocks of publishes in flight
 * @param pinnedBlocks blocks held by a lease or a grant
 * @param pinRefs holders of them
 * @param leases live leases
 * @param leaseBytes bytes under them, shared blocks counted once a lease
 * @param oldestLeaseNs age of the oldest lease; 0 without one
 * @param queriesPending queries with an identity that are remembered
 * @param grantsActive operations between Preparing and settled
 * @param retainedOperations operations for whose end evidence is missing
 * @param retainedBytes bytes they hold
 * @param sessions live sessions
 * @param sessionsRetained ended sessions whose slot is held by retained operations
 * @param registrations registrations
 * @param metadataBytes bytes of the core's tables
 * @param lookupsTotal lookups
 * @param lookupBlocksTotal blocks asked for by lookups
 * @param hitBlocksTotal blocks found by lookups
 * @param missesTotal missing blocks, by code of MissReason
 * @param queriesExpiredTotal queries forgotten because their latest answer was too old
 * @param insertionsTotal blocks sealed
 * @param heldTotal blocks of publishes that were held already
 * @param refusedTotal blocks of publishes for which there was no room
 * @param evictionsTotal blocks evicted
 * @param evictedBytesTotal their bytes
 * @param restoresTotal restores that drained whole
 * @param restoredBytesTotal their bytes
 * @param publishesTotal publishes that were sealed
 * @param publishedBytesTotal their bytes
 * @param failedTotal operations that ended otherwise
 * @param revokedTotal those of them whose grant was taken back because others waited for its room
 * @param damagedTotal blocks dropped since an engine found other bytes than were published
 * @param staleCommandsTotal commands of an earlier generation, dropped
 * @param violationsTotal sessions closed for breaking the protocol
 * @param perSession one line for each live or retained session
 * @param retained the retained operations, at most {@link #MAX_RETAINED_SHOWN} of them
 * @param ssd the SSD tier; null without one
 */
@SuppressWarnings("ArrayRecordComponent") // a snapshot, never compared
public record CoreStats(
    long poolCapacityBytes,
    long poolUsedBytes,
    int slabsTotal,
    int slabsFree,
    long residentBlocks,
    long residentBytes,
    long unsealedBlocks,
    long pinnedBlocks,
    long pinRefs,
    int leases,
    long leaseBytes,
    long oldestLeaseNs,
    int queriesPending,
    int grantsActive,
    int retainedOperations,
    long retainedBytes,
    int sessions,
    int sessionsRetained,
    int registrations,
    long metadataBytes,
    long lookupsTotal,
    long lookupBlocksTotal,
    long hitBlocksTotal,
    long[] missesTotal,
    long queriesExpiredTotal,
    long insertionsTotal,
    long heldTotal,
    long refusedTotal,
    long evictionsTotal,
    long evictedBytesTotal,
    long restoresTotal,
    long restoredBytesTotal,
    long publishesTotal,
    long publishedBytesTotal,
    long failedTotal,
    long revokedTotal,
    long damagedTotal,
    long staleCommandsTotal,
    long violationsTotal,
    List<Session> perSession,
    List<Retained> retained,
    SsdStats ssd) {
  /** Most entries of {@link #retained}. */
  public static final int MAX_RETAINED_SHOWN = 256;

  /** Age of the retained operation that has been so for longest; 0 without one. */
  public long oldestRetainedNs() {
    return retained.stream().mapToLong(Retained::ageNs).max().orElse(0);
  }

  /**
   * One retained operation.
   *
   * @param slot session slot
   * @param pid process of the engine
   * @param instance instance id
   * @param record grant record
   * @param publish whether it is a publish, else a restore
   * @param reason which evidence is missing
   * @param ageNs since the session ended; 0 while it is open
   * @param bytes bytes of the pool that it holds
   */
  public record Retained(
      int slot,
      int pid,
      String instance,
      int record,
      boolean publish,
      RetainedReason reason,
      long ageNs,
      long bytes) {}

  /**
   * One session.
   *
   * @param slot session slot
   * @param pid process of the engine
   * @param instance instance id
   * @param client name that the client gave itself
   * @param open false once the session is over
   * @param registrations its registrations
   * @param leases leases it asked for
   * @param grants operations that are not settled
   * @param lookupBlocksTotal blocks that its lookups asked for
   * @param hitBlocksTotal blocks that they found
   * @param restoredBlocksTotal blocks of its restores that drained whole
   * @param restoredBytesTotal their bytes
   * @param publishedBlocksTotal blocks of its publishes that were sealed
   * @param publishedBytesTotal their bytes
   */
  public record Session(
      int slot,
      int pid,
      String instance,
      String client,
      boolean open,
      int registrations,
      int leases,
      int grants,
      long lookupBlocksTotal,
      long hitBlocksTotal,
      long restoredBlocksTotal,
      long restoredBytesTotal,
      long publishedBlocksTotal,
      long publishedBytesTotal) {}
}
