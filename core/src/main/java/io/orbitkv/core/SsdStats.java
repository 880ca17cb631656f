package io.orbitkv.core;

/**
 * What the SSD tier holds and has done. Counters end in Total; all else are gauges.
 *
 * @param blocks blocks that lookups find on SSD
 * @param usedBytes their bytes
 * @param capacityBytes bytes that blocks may take
 * @param segments segments of all files
 * @param freeSegments empty ones
 * @param retiredSegments those set aside because the device does not write or read them
 * @param queued blocks that wait to be written
 * @param inFlight reads and writes in progress
 * @param loads blocks that are being loaded or wait for it
 * @param pinnedBytes bytes of DRAM that loads pin
 * @param stalledPaths files that do not answer in time
 * @param slowPaths files that are by-passed since they are read more slowly than the floor
 * @param readBytesPerSecond speed of reads from each file, as last measured
 * @param retained reads and writes that do not return: their memory stays pinned
 * @param waitingClears clears that are not written yet: the end of the process would undo them
 * @param stallsTotal times that a file stopped answering
 * @param readBlocksTotal blocks loaded
 * @param readBytesTotal their bytes
 * @param joinedLoadsTotal lookups that found a load in progress
 * @param writtenBlocksTotal blocks written
 * @param writtenBytesTotal their bytes, whole pages
 * @param lifetimeBytes bytes written since the files were made, tables included
 * @param evictedBlocksTotal blocks that gave way to newer ones
 * @param hitBlocksTotal blocks that lookups found here and not in DRAM
 * @param noRoomTotal loads refused for want of room in DRAM
 * @param bypassedTotal loads refused because the file did not answer
 * @param refusedTotal blocks not written, by code of {@link SsdRefusal}
 * @param readFailuresTotal failed reads, by result of {@link SsdPort}
 * @param writeFailuresTotal failed writes, by result of {@link SsdPort}
 */
@SuppressWarnings("ArrayRecordComponent") // a snapshot, never compared
public record SsdStats(
    long blocks,
    long usedBytes,
    long capacityBytes,
    int segments,
    int freeSegments,
    int retiredSegments,
    int queued,
    int inFlight,
    int loads,
    long pinnedBytes,
    int stalledPaths,
    int slowPaths,
    long[] readBytesPerSecond,
    int retained,
    int waitingClears,
    long stallsTotal,
    long readBlocksTotal,
    long readBytesTotal,
    long joinedLoadsTotal,
    long writtenBlocksTotal,
    long writtenBytesTotal,
    long lifetimeBytes,
    long evictedBlocksTotal,
    long hitBlocksTotal,
    long noRoomTotal,
    long bypassedTotal,
    long[] refusedTotal,
    long[] readFailuresTotal,
    long[] writeFailuresTotal) {
  /** Blocks whose bytes did not have their checksum, read or about to be written. */
  public long crcFailuresTotal() {
    return readFailuresTotal[SsdPort.DAMAGED] + writeFailuresTotal[SsdPort.DAMAGED];
  }
}
