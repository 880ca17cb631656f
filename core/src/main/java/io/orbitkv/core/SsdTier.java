package io.orbitkv.core;

import io.orbitkv.channel.MissReason;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The core's state of the SSD tier: which blocks are there, what is being loaded, what waits to be
 * written. What it asks of the files goes out through {@link SsdPort}; results and time come in.
 */
final class SsdTier implements SsdRecovery {
  private static final int MAX_ROWS = 1 << 26;
  private static final long TABLES_NS = 20_000_000L;
  private static final long AGING_NS = 60_000_000_000L;
  private static final int FLUSH_ROWS_A_STEP = 4096;
  private static final int DIGEST_BYTES = 32;

  private final SsdConfig config;
  private final BlockStore store;
  private final Namespaces namespaces;
  private final SsdMap map;
  private final SsdSegments segments;
  private final SsdInFlight inFlight;
  private final SsdEmptier emptier;
  private final SsdWriter writer;
  private final SsdLoads loads;
  private final SsdClears clears;
  private long lastTablesNs;
  private long lastAgingNs;
  private int recovering;
  private boolean flushing;
  private int flushRow;

  SsdTier(
      SsdConfig config,
      SsdPort port,
      BlockStore store,
      Namespaces namespaces,
      MetadataMemory memory) {
    this.config = config;
    this.store = store;
    this.namespaces = namespaces;
    long pages = (long) config.pathOfSegment().length * (config.pages() - config.firstPage());
    this.map = new SsdMap((int) Math.min(MAX_ROWS, pages), memory);
    this.segments = new SsdSegments(config);
    this.inFlight = new SsdInFlight(config);
    this.emptier = new SsdEmptier(config, store, map, segments);
    this.writer = new SsdWriter(config, port, store, map, segments, inFlight, emptier);
    this.loads = new SsdLoads(config, port, store, map, segments, inFlight);
    this.clears = new SsdClears(port, segments);
  }

  // ---- recovery ----

  @Override
  public void nextGeneration(long least) {
    segments.skipTo(least);
  }

  @Override
  public void segment(int segment, long generation, long lifetimeBytes) {
    segments.recovered(segment, generation);
    writer.lifetimeBytes = Math.max(writer.lifetimeBytes, lifetimeBytes);
    recovering = segment;
  }

  @Override
  public int space(MemorySegment memory, long at, int group, int hashBytes, int blockBytes) {
    byte[] digest = memory.asSlice(at, DIGEST_BYTES).toArray(ValueLayout.JAVA_BYTE);
    Namespaces.Space space = namespaces.recover(digest, group, hashBytes, blockBytes, store.pool());
    return space == null ? -1 : space.id;
  }

  @Override
  public boolean block(int space, MemorySegment memory, long hash, int page, int crc) {
    return writer.recovered(namespaces.space(space), memory, hash, recovering, page, crc);
  }

  @Override
  public void end() {
    map.build();
  }

  // ---- what the core tells it ----

  /** A block was published. */
  void sealed(int row) {
    if (config.policy() == SsdConfig.WritePolicy.ALL) {
      writer.offer(row);
    } else {
      writer.noteIfOnSsd(row);
    }
  }

  /** True when a lookup would find a copy of a resident row here. */
  boolean holds(int row) {
    return store.hasMark(row, BlockIndex.SSD_KNOWN) && writer.isOnSsd(row);
  }

  /** Rows were leased: a use, and an end of their hold after a load. */
  void leased(int[] rows, int count) {
    for (int i = 0; i < count; i++) {
      if (store.hasMark(rows[i], BlockIndex.HELD_LOAD)) {
        loads.leased(rows[i]);
      }
      writer.offer(rows[i]);
    }
  }

  /** A resident block was published again: a use. */
  void reused(int row) {
    writer.offer(row);
  }

  // ---- lookups ----

  /** Row of a block that can be loaded; −1 when there is none. */
  int find(Namespaces.Space space, MemorySegment data, long hash, int hashBytes) {
    int ssd = map.find(space.id, data, hash, hashBytes);
    return ssd >= 0 && loads.isReachable(ssd) ? ssd : -1;
  }

  /** True when the block is on SSD but can not be loaded now. */
  boolean holdsUnreachable(Namespaces.Space space, MemorySegment data, long hash, int hashBytes) {
    return map.find(space.id, data, hash, hashBytes) >= 0;
  }

  /** Begins or joins a load; see {@link SsdLoads#load}. */
  int load(int ssd, int parentRow, long nowNs) {
    return loads.load(ssd, parentRow, nowNs);
  }

  // ---- results and time ----

  void completed(int request, int result, long nowNs) {
    int index = SsdRequest.index(request);
    switch (SsdRequest.kind(request)) {
      case SsdRequest.READ -> {
        inFlight.end(request, pathOfLoad(index), nowNs);
        int bad = loads.completed(index, result, nowNs);
        if (bad >= 0) {
          readFailed(bad, result, nowNs);
        }
      }
      case SsdRequest.WRITE -> {
        inFlight.end(request, segments.path(writer.segmentOfWrite(index)), nowNs);
        writer.written(index, result, nowNs);
      }
      case SsdRequest.OPEN -> {
        inFlight.end(request, segments.path(index), nowNs);
        writer.opened(index, result, nowNs);
      }
      case SsdRequest.TABLE -> {
        inFlight.end(request, segments.path(index), nowNs);
        writer.tableWritten(index, result, nowNs);
      }
      default -> {
        if (result != SsdPort.OK) {
          writer.failures[result]++;
        }
        clears.completed(result, nowNs);
      }
    }
  }

  private int pathOfLoad(int load) {
    return segments.path(loads.segment(load));
  }

  /** The block is not served again; its segment is set aside when that happens often. */
  private void readFailed(int ssd, int result, long nowNs) {
    int segment = map.segment(ssd);
    int spaceId = map.space(ssd);
    if (spaceId >= 0) {
      emptier.withdraw(ssd);
      store.noteMiss(map.digest(ssd), store.space(spaceId), MissReason.TIER);
    }
    if (result != SsdPort.DAMAGED && segments.failed(segment)) {
      writer.closeIfOpen(segment, nowNs);
    }
  }

  /** Goes on with all that waits, as far as that takes a bounded time; returns work done. */
  int step(long nowNs) {
    int work = emptier.step();
    for (int path = 0; path < config.paths(); path++) {
      loads.pump(path, nowNs);
    }
    if (flushing) {
      offerResident();
    }
    work += writer.pump(nowNs);
    if (nowNs - lastTablesNs >= TABLES_NS || flushing) {
      lastTablesNs = nowNs;
      writer.tick(nowNs);
    }
    return work;
  }

  /** Lets time pass: looks for files that do not answer, and for loads that nobody came for. */
  void tick(long nowNs) {
    for (int path = 0; path < config.paths(); path++) {
      if (inFlight.check(path, nowNs)) {
        loads.giveUpWaiting(path);
      }
    }
    loads.expireHolds(nowNs);
    loads.speed().tick(nowNs);
    clears.tick(nowNs);
    if (nowNs - lastAgingNs >= AGING_NS) {
      lastAgingNs = nowNs;
      segments.age();
    }
  }

  /** True while something goes on that no completion will announce. */
  boolean isBusy() {
    return emptier.isBusy() || flushing || writer.queued() > 0;
  }

  // ---- clear and stop ----

  /** The spaces of a namespace, or of all for null, were just replaced. */
  void clear(MemorySegment namespace, long nowNs) {
    writer.closeAll(nowNs);
    emptier.beginSweep();
    clears.add(namespace);
  }

  /** Clears that a restart would not know of. */
  int clearsWaiting() {
    return clears.waiting();
  }

  /** Wants every resident block on SSD, and tables at once. */
  void beginFlush() {
    flushing = true;
    flushRow = 0;
    writer.beginFlush();
  }

  private void offerResident() {
    int end = Math.min(store.rowEnd(), flushRow + FLUSH_ROWS_A_STEP);
    for (; flushRow < end && !writer.isQueueFull(); flushRow++) {
      if (store.isResident(flushRow) && !store.spaceOf(flushRow).isCleared()) {
        writer.offer(flushRow);
      }
    }
  }

  /** True once everything that was wanted is on SSD, or was refused. */
  boolean isFlushed() {
    return flushRow == store.rowEnd() && writer.isSettled() && clears.waiting() == 0;
  }

  // ---- statistics ----

  long metadataBytes() {
    return map.usedBytes();
  }

  SsdStats stats(long nowNs) {
    long pages = (long) segments.count() * (config.pages() - config.firstPage());
    return new SsdStats(
        map.live(),
        writer.usedBytes - emptier.removedBytes,
        pages * SsdPort.PAGE_BYTES,
        segments.count(),
        segments.count(SsdSegments.State.FREE),
        segments.count(SsdSegments.State.RETIRED),
        writer.queued(),
        inFlight.total(),
        loads.active(),
        loads.pinnedBytes(),
        inFlight.stalledPaths(),
        loads.speed().slowPaths(),
        loads.speed().bytesPerSecond(),
        inFlight.overdue(nowNs),
        clears.waiting(),
        inFlight.stalls,
        loads.loads,
        loads.loadedBytes,
        loads.joined,
        writer.blocksWritten,
        writer.bytesWritten,
        writer.lifetimeBytes,
        emptier.evictions,
        loads.begun,
        loads.noRoom,
        loads.bypassed,
        writer.refusals.clone(),
        loads.failures.clone(),
        writer.failures.clone());
  }

  SsdMap map() {
    return map;
  }

  SsdSegments segments() {
    return segments;
  }
}
