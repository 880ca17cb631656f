package io.orbitkv.core;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Writes blocks behind their publishes, while they are still in DRAM, one behind the other into the
 * open segment of a file: first the block, then a table that names it, and only then do lookups
 * find it on SSD. A table is written after each eighth of a segment and after a second, so the end
 * of the process costs what came since. Where few blocks came in that second the table waits for
 * more, a few seconds at most, so that tables do not wear out the disk.
 */
final class SsdWriter {
  private static final int QUEUE = 1 << 16;
  private static final int CHECKPOINTS = 8;
  private static final int CHECKPOINT_BLOCKS = 2048;
  private static final long CHECKPOINT_NS = 1_000_000_000L;
  private static final double DAY_NS = 86_400e9;
  private static final long LATEST_CHECKPOINT_NS = 10 * CHECKPOINT_NS;
  private static final int MAX_TABLE_SHARE = 8;
  private static final int WRITES_A_STEP = 64;
  private static final int LOOKS_A_STEP = 512;

  private final SsdConfig config;
  private final SsdPort port;
  private final BlockStore store;
  private final SsdMap map;
  private final SsdSegments segments;
  private final SsdInFlight inFlight;
  private final SsdEmptier emptier;

  private final int[] queueRow = new int[QUEUE];
  private final long[] queueAllocation = new long[QUEUE];
  private long queueHead;
  private long queueTail;

  private final int[] writeRow;
  private final int[] writeSsdRow;
  private final int[] freeWrites;
  private int freeWriteCount;

  private final int[] open; // of each path, −1 for none
  private final int[] opening;
  private final int[] nextPage; // of each segment
  private final int[] entries;
  private final int[] writes;
  private final int[] pending; // first row that no table names yet, plus one
  private final int[] covering; // first row that the table in progress names, plus one
  private final int[] pendingBlocks;
  private final long[] pendingBytes;
  private final long[] pendingSinceNs;
  private final boolean[] tableInProgress;
  private final boolean[] lastTable;
  private int unsettled;
  private int nextPath;
  private long voidBefore;
  private boolean flushing;

  private double dayLeft;
  private long dayLeftAtNs = Long.MIN_VALUE;

  long usedBytes;
  long blocksWritten;
  long bytesWritten;
  long lifetimeBytes;
  final long[] refusals = new long[SsdRefusal.COUNT];
  final long[] failures = new long[SsdPort.RESULTS];

  SsdWriter(
      SsdConfig config,
      SsdPort port,
      BlockStore store,
      SsdMap map,
      SsdSegments segments,
      SsdInFlight inFlight,
      SsdEmptier emptier) {
    this.config = config;
    this.port = port;
    this.store = store;
    this.map = map;
    this.segments = segments;
    this.inFlight = inFlight;
    this.emptier = emptier;
    int slots = config.paths() * config.depth();
    this.writeRow = new int[slots];
    this.writeSsdRow = new int[slots];
    this.freeWrites = new int[slots];
    for (int i = 0; i < slots; i++) {
      freeWrites[freeWriteCount++] = slots - 1 - i;
    }
    this.open = new int[config.paths()];
    this.opening = new int[config.paths()];
    Arrays.fill(open, -1);
    Arrays.fill(opening, -1);
    int count = segments.count();
    this.nextPage = new int[count];
    this.entries = new int[count];
    this.writes = new int[count];
    this.pending = new int[count];
    this.covering = new int[count];
    this.pendingBlocks = new int[count];
    this.pendingBytes = new long[count];
    this.pendingSinceNs = new long[count];
    this.tableInProgress = new boolean[count];
    this.lastTable = new boolean[count];
    this.dayLeft = (double) config.dailyWriteBytes();
  }

  // ---- queue ----

  /** Wants a resident row on SSD, unless it is there. */
  void offer(int row) {
    if (store.hasMark(row, BlockIndex.SSD_KNOWN)) {
      return;
    }
    if (noteIfOnSsd(row)) {
      return;
    }
    if (isQueueFull()) {
      refuse(SsdRefusal.QUEUE_FULL);
      return;
    }
    store.setMark(row, BlockIndex.SSD_KNOWN);
    int place = (int) queueTail++ & (QUEUE - 1);
    queueRow[place] = row;
    queueAllocation[place] = store.allocation(row);
  }

  /** Marks a resident row that is on SSD already, and says whether it is. */
  boolean noteIfOnSsd(int row) {
    boolean there = isOnSsd(row);
    if (there) {
      store.setMark(row, BlockIndex.SSD_KNOWN);
    }
    return there;
  }

  boolean isOnSsd(int row) {
    return map.find(store.spaceOf(row).id, store.hashes(), BlockIndex.hashAt(row), 32) >= 0;
  }

  boolean isQueueFull() {
    return queueTail - queueHead == QUEUE;
  }

  private void refuse(SsdRefusal reason) {
    refusals[reason.code()]++;
  }

  int queued() {
    return (int) (queueTail - queueHead);
  }

  // ---- writes ----

  /** Begins writes as far as depth, budget and segments allow; returns how many. */
  int pump(long nowNs) {
    int begun = 0;
    for (int looks = 0; looks < LOOKS_A_STEP && begun < WRITES_A_STEP; looks++) {
      if (queueHead == queueTail) {
        break;
      }
      int place = (int) queueHead & (QUEUE - 1);
      int row = queueRow[place];
      if (!isWanted(row, queueAllocation[place])) {
        queueHead++;
        continue;
      }
      int path = freeWriteCount == 0 ? -1 : pathFor(pagesOf(row), nowNs);
      if (path < 0) {
        break;
      }
      queueHead++;
      if (!mayWrite(row, nowNs)) {
        store.clearMark(row, BlockIndex.SSD_KNOWN);
        continue;
      }
      begun += begin(row, path, nowNs) ? 1 : 0;
    }
    return begun;
  }

  private boolean isWanted(int row, long allocation) {
    boolean same = store.isResident(row) && store.allocation(row) == allocation;
    if (!same || store.spaceOf(row).isCleared()) {
      refuse(SsdRefusal.EVICTED);
      return false;
    }
    if (pagesOf(row) > config.pages() - config.firstPage()) {
      refuse(SsdRefusal.TOO_LARGE);
      return false;
    }
    return !isOnSsd(row);
  }

  private int pagesOf(int row) {
    return pages(store.spaceOf(row).blockBytes);
  }

  private static int pages(int bytes) {
    return (int) (((long) bytes + SsdPort.PAGE_BYTES - 1) / SsdPort.PAGE_BYTES);
  }

  private boolean mayWrite(int row, long nowNs) {
    if (config.dailyWriteBytes() == 0) {
      return true;
    }
    long daily = config.dailyWriteBytes();
    if (dayLeftAtNs != Long.MIN_VALUE) {
      dayLeft = Math.min((double) daily, dayLeft + (nowNs - dayLeftAtNs) / DAY_NS * daily);
    }
    dayLeftAtNs = nowNs;
    long bytes = (long) pagesOf(row) * SsdPort.PAGE_BYTES;
    if (dayLeft < bytes) {
      refuse(SsdRefusal.WRITE_BUDGET);
      return false;
    }
    dayLeft -= bytes;
    return true;
  }

  /** A path with an open segment that has room for so many pages; −1 when none is ready. */
  private int pathFor(int pages, long nowNs) {
    for (int i = 0; i < open.length; i++) {
      int path = nextPath;
      nextPath = (nextPath + 1) % open.length;
      if (!inFlight.hasRoomForWrite(path)) {
        continue;
      }
      int segment = open[path];
      if (segment >= 0 && nextPage[segment] + pages > config.pages()) {
        close(path, nowNs);
        segment = -1;
      }
      if (segment >= 0) {
        return path;
      }
      openNext(path, nowNs);
    }
    return -1;
  }

  private void openNext(int path, long nowNs) {
    if (opening[path] >= 0 || !inFlight.hasRoomBeside(path)) {
      return;
    }
    int segment = segments.beginOpen(path);
    if (segment < 0) {
      emptier.wantRoom(path);
      return;
    }
    opening[path] = segment;
    nextPage[segment] = config.firstPage();
    entries[segment] = 0;
    lastTable[segment] = false;
    unsettled++;
    int request = SsdRequest.of(SsdRequest.OPEN, segment);
    inFlight.begin(request, path, nowNs);
    port.openSegment(request, segment, segments.generation(segment));
  }

  /** A segment is empty on disk, or could not be made so. */
  void opened(int segment, int result, long nowNs) {
    int path = segments.path(segment);
    opening[path] = -1;
    segments.opened(segment);
    if (result != SsdPort.OK) {
      failures[result]++;
      segments.failed(segment);
      segments.close(segment);
      writeTable(segment, nowNs);
      return;
    }
    segments.blanked(segment);
    if (segments.generation(segment) < voidBefore) { // a clear came meanwhile
      segments.close(segment);
      writeTable(segment, nowNs);
    } else {
      open[path] = segment;
    }
  }

  /** Closes a segment that is to be set aside, if it is open. */
  void closeIfOpen(int segment, long nowNs) {
    if (open[segments.path(segment)] == segment) {
      close(segments.path(segment), nowNs);
    }
  }

  private void close(int path, long nowNs) {
    int segment = open[path];
    open[path] = -1;
    segments.close(segment);
    writeTable(segment, nowNs);
  }

  private boolean begin(int row, int path, long nowNs) {
    int ssd = map.takeRow();
    if (ssd < 0) {
      refuse(SsdRefusal.TABLE_FULL);
      return false;
    }
    int segment = open[path];
    int page = nextPage[segment];
    nextPage[segment] += pagesOf(row);
    if (segments.free(path) == 0 && 2 * nextPage[segment] > config.pages()) {
      emptier.wantRoom(path); // so that the next segment is ready in time
    }
    Namespaces.Space space = store.spaceOf(row);
    int crc = store.crc(row);
    map.fill(ssd, space.id, store.hashes(), BlockIndex.hashAt(row), crc, segment, page);
    int write = freeWrites[--freeWriteCount];
    writeRow[write] = row;
    writeSsdRow[write] = ssd;
    writes[segment]++;
    store.pin(row);
    int request = SsdRequest.of(SsdRequest.WRITE, write);
    inFlight.begin(request, path, nowNs);
    port.write(request, segment, page, store.arena(row), store.offset(row), space.blockBytes, crc);
    return true;
  }

  int segmentOfWrite(int write) {
    return map.segment(writeSsdRow[write]);
  }

  /** The write of a block is done. */
  void written(int write, int result, long nowNs) {
    int row = writeRow[write];
    int ssd = writeSsdRow[write];
    freeWrites[freeWriteCount++] = write;
    int segment = map.segment(ssd);
    writes[segment]--;
    store.unpin(row);
    if (result != SsdPort.OK) {
      failed(row, ssd, result, nowNs);
    } else if (store.spaceOf(row).isCleared()) {
      map.freeRow(ssd);
    } else {
      note(row, ssd, segment, nowNs);
    }
    writeTable(segment, nowNs);
  }

  private void failed(int row, int ssd, int result, long nowNs) {
    int segment = map.segment(ssd);
    failures[result]++;
    map.freeRow(ssd);
    if (result == SsdPort.DAMAGED) { // what is in DRAM is not what was published
      store.discard(row);
      return;
    }
    store.clearMark(row, BlockIndex.SSD_KNOWN);
    if (segments.failed(segment)) {
      closeIfOpen(segment, nowNs);
    }
  }

  private void note(int row, int ssd, int segment, long nowNs) {
    Namespaces.Space space = store.spaceOf(row);
    long moved = (long) pages(space.blockBytes) * SsdPort.PAGE_BYTES;
    blocksWritten++;
    bytesWritten += moved;
    lifetimeBytes += moved;
    boolean added =
        port.addEntry(
            segment,
            map.hashes(),
            SsdMap.hashAt(ssd),
            space.namespace.digest,
            space.group,
            space.namespace.hashBytes,
            map.page(ssd),
            space.blockBytes,
            map.crc(ssd));
    if (!added) {
      refuse(SsdRefusal.TABLE_FULL);
      map.freeRow(ssd);
      closeIfOpen(segment, nowNs);
      return;
    }
    if (pending[segment] == 0) {
      pendingSinceNs[segment] = nowNs;
    }
    map.setSibling(ssd, pending[segment]);
    pending[segment] = ssd + 1;
    entries[segment]++;
    pendingBlocks[segment]++;
    pendingBytes[segment] += moved;
  }

  // ---- tables ----

  /** Writes the table of a segment when it is due. */
  private void writeTable(int segment, long nowNs) {
    boolean last =
        segments.state(segment) == SsdSegments.State.CLOSED
            && writes[segment] == 0
            && segments.isUnsettled(segment);
    if (tableInProgress[segment] || !(last || isDue(segment, nowNs))) {
      return;
    }
    if (!inFlight.hasRoomBeside(segments.path(segment))) {
      return; // looked at again with the next step
    }
    covering[segment] = pending[segment];
    pending[segment] = 0;
    pendingBlocks[segment] = 0;
    pendingBytes[segment] = 0;
    tableInProgress[segment] = true;
    lastTable[segment] = last;
    lifetimeBytes += tableBytes(segment);
    int request = SsdRequest.of(SsdRequest.TABLE, segment);
    inFlight.begin(request, segments.path(segment), nowNs);
    port.writeTable(request, segment, lifetimeBytes, last);
  }

  private boolean isDue(int segment, long nowNs) {
    long share = (long) config.pages() * SsdPort.PAGE_BYTES / CHECKPOINTS;
    long ageNs = nowNs - pendingSinceNs[segment];
    boolean isWorthIt = pendingBytes[segment] >= MAX_TABLE_SHARE * tableBytes(segment);
    return pending[segment] != 0
        && (flushing
            || pendingBytes[segment] >= share
            || pendingBlocks[segment] >= CHECKPOINT_BLOCKS
            || ageNs >= (isWorthIt ? CHECKPOINT_NS : LATEST_CHECKPOINT_NS));
  }

  /** Bytes that writing the table of a segment takes, in whole pages. */
  private long tableBytes(int segment) {
    long bytes = (long) entries[segment] * SsdPort.TABLE_ENTRY_BYTES;
    return (bytes / SsdPort.PAGE_BYTES + 2) * SsdPort.PAGE_BYTES;
  }

  /** A table is on disk, or could not be written: what it names is found from now on, or gone. */
  void tableWritten(int segment, int result, long nowNs) {
    tableInProgress[segment] = false;
    int next = covering[segment];
    covering[segment] = 0;
    while (next != 0) {
      int ssd = next - 1;
      next = map.sibling(ssd);
      Namespaces.Space space = store.space(map.space(ssd));
      if (result == SsdPort.OK && !space.isCleared()) {
        makeVisible(ssd, space, segment);
      } else {
        emptier.forget(ssd, space);
        map.freeRow(ssd);
      }
    }
    if (result != SsdPort.OK) {
      failures[result]++;
      if (segments.failed(segment)) {
        closeIfOpen(segment, nowNs);
      }
    }
    if (lastTable[segment]) {
      lastTable[segment] = false;
      segments.settled(segment);
      unsettled--;
    } else {
      writeTable(segment, nowNs);
    }
  }

  private void makeVisible(int ssd, Namespaces.Space space, int segment) {
    map.insert(ssd);
    addToSegment(ssd, space, segment);
  }

  private void addToSegment(int ssd, Namespaces.Space space, int segment) {
    map.setSibling(ssd, segments.firstRow(segment));
    segments.setFirstRow(segment, ssd + 1);
    space.ssdBlocks++;
    usedBytes += space.blockBytes;
  }

  /** A block was found on disk at the start; false when there is no row left. */
  boolean recovered(
      Namespaces.Space space, MemorySegment hashes, long hash, int segment, int page, int crc) {
    int ssd = map.takeRow();
    if (ssd < 0) {
      return false;
    }
    map.fill(ssd, space.id, hashes, hash, crc, segment, page);
    map.insertAtBuild();
    addToSegment(ssd, space, segment);
    return true;
  }

  // ---- time, clear and stop ----

  /** Looks after tables that are due by their age; for every tick. */
  void tick(long nowNs) {
    if (unsettled == 0) {
      return;
    }
    for (int segment = 0; segment < writes.length; segment++) {
      if (segments.isUnsettled(segment)) {
        writeTable(segment, nowNs);
      }
    }
  }

  /** Closes what is open, so that all that is written from now on is in newer segments. */
  void closeAll(long nowNs) {
    voidBefore = segments.nextGeneration();
    for (int path = 0; path < open.length; path++) {
      if (open[path] >= 0) {
        close(path, nowNs);
      }
    }
  }

  /** From now on tables are written at once. */
  void beginFlush() {
    flushing = true;
  }

  /** True when nothing waits for the device. */
  boolean isSettled() {
    if (queueHead < queueTail) {
      return false;
    }
    for (int segment = 0; unsettled > 0 && segment < writes.length; segment++) {
      if (writes[segment] > 0 || pending[segment] != 0 || tableInProgress[segment]) {
        return false;
      }
    }
    return true;
  }
}
