package io.orbitkv.core;

import java.util.Arrays;

/**
 * Blocks on their way from SSD into the pool. Equal loads are one; each has a pinned row that no
 * lookup finds before its bytes are there and checked. A load that does not return keeps its row:
 * the device may still write there. What was loaded stays pinned until somebody leases it, a few
 * seconds at most.
 */
final class SsdLoads {
  /** {@link #load}: nothing to load here now. */
  static final int GONE = -1;

  /** {@link #load}: a budget is used up, or the pool is in use. */
  static final int NO_ROOM = -2;

  /** {@link #load}: the file does not answer. */
  static final int BYPASSED = -3;

  /** Most loads at once, waiting ones included. */
  static final int MAX_LOADS = 8192;

  private static final int MAX_HELD = 1 << 16;
  private static final long HOLD_NS = 3_000_000_000L;
  private static final int POOL_SHARE = 4;

  private final SsdPort port;
  private final BlockStore store;
  private final SsdMap map;
  private final SsdSegments segments;
  private final SsdInFlight inFlight;
  private final SsdSpeed speed;
  private final long budgetBytes;

  private final int[] ssdRow = new int[MAX_LOADS];
  private final int[] row = new int[MAX_LOADS];
  private final int[] parent = new int[MAX_LOADS];
  private final long[] parentAllocation = new long[MAX_LOADS];
  private final int[] nextWaiting = new int[MAX_LOADS];
  private final int[] free = new int[MAX_LOADS];
  private int freeCount;
  private final int[] firstWaiting;
  private final int[] lastWaiting;

  private final int[] heldRow = new int[MAX_HELD];
  private final long[] heldAllocation = new long[MAX_HELD];
  private final long[] heldUntilNs = new long[MAX_HELD];
  private long heldHead;
  private long heldTail;
  private long bytes;
  private long heldBytes;

  long begun;
  long loads;
  long loadedBytes;
  long joined;
  long noRoom;
  long bypassed;
  final long[] failures = new long[SsdPort.RESULTS];

  SsdLoads(
      SsdConfig config,
      SsdPort port,
      BlockStore store,
      SsdMap map,
      SsdSegments segments,
      SsdInFlight inFlight) {
    this.port = port;
    this.store = store;
    this.map = map;
    this.segments = segments;
    this.inFlight = inFlight;
    this.speed = new SsdSpeed(config);
    this.budgetBytes = store.pool().capacityBytes() / POOL_SHARE;
    this.firstWaiting = new int[config.paths()];
    this.lastWaiting = new int[config.paths()];
    Arrays.fill(firstWaiting, -1);
    for (int i = 0; i < MAX_LOADS; i++) {
      free[freeCount++] = MAX_LOADS - 1 - i;
    }
  }

  /** True when a lookup may count on the block: it can be read, or is being read in time. */
  boolean isReachable(int ssd) {
    int segment = map.segment(ssd);
    int path = segments.path(segment);
    return segments.isReadable(segment) && !inFlight.isStalled(path) && !speed.isSlow(path);
  }

  /**
   * Begins to load a block or joins its load.
   *
   * @param parentRow row of the block before it in its chain, resident or being loaded; −1 for none
   * @return its row, which is pinned and not resident yet; or {@link #GONE}, {@link #NO_ROOM} or
   *     {@link #BYPASSED}
   */
  int load(int ssd, int parentRow, long nowNs) {
    int segment = map.segment(ssd);
    int path = segments.path(segment);
    if (inFlight.isStalled(path)) {
      bypassed++;
      return BYPASSED;
    }
    int same = map.load(ssd) - 1;
    if (same >= 0) {
      joined++;
      return row[same];
    }
    if (!segments.isReadable(segment)) {
      return GONE;
    }
    Namespaces.Space space = store.space(map.space(ssd));
    int slotBytes = space.size.slotBytes;
    if (freeCount == 0 || bytes + heldBytes + slotBytes > budgetBytes) {
      noRoom++;
      return NO_ROOM;
    }
    int taken = store.allocate(space, map.hashes(), SsdMap.hashAt(ssd), 32);
    if (taken < 0) {
      store.noteShortage(space);
      noRoom++;
      return NO_ROOM;
    }
    int load = free[--freeCount];
    ssdRow[load] = ssd;
    row[load] = taken;
    parent[load] = parentRow;
    parentAllocation[load] = parentRow < 0 ? 0 : store.allocation(parentRow);
    map.setLoad(ssd, load + 1);
    segments.addReader(segment);
    store.setCrc(taken, map.crc(ssd));
    bytes += slotBytes;
    begun++;
    addWaiting(path, load);
    pump(path, nowNs);
    return taken;
  }

  private void addWaiting(int path, int load) {
    nextWaiting[load] = -1;
    if (firstWaiting[path] < 0) {
      firstWaiting[path] = load;
    } else {
      nextWaiting[lastWaiting[path]] = load;
    }
    lastWaiting[path] = load;
  }

  boolean hasWaiting(int path) {
    return firstWaiting[path] >= 0;
  }

  /** Hands waiting loads to the device as far as its depth allows. */
  void pump(int path, long nowNs) {
    while (firstWaiting[path] >= 0 && inFlight.hasRoom(path)) {
      int load = firstWaiting[path];
      firstWaiting[path] = nextWaiting[load];
      int at = row[load];
      int ssd = ssdRow[load];
      inFlight.begin(SsdRequest.of(SsdRequest.READ, load), path, nowNs);
      speed.begin(path, nowNs);
      port.read(
          SsdRequest.of(SsdRequest.READ, load),
          map.segment(ssd),
          map.page(ssd),
          store.arena(at),
          store.offset(at),
          store.spaceOf(at).blockBytes,
          map.crc(ssd));
    }
  }

  /** Gives up what waits for a file that does not answer; what is being read keeps its memory. */
  void giveUpWaiting(int path) {
    while (firstWaiting[path] >= 0) {
      int load = firstWaiting[path];
      firstWaiting[path] = nextWaiting[load];
      bypassed++;
      abandon(load);
    }
  }

  private void abandon(int load) {
    bytes -= store.spaceOf(row[load]).size.slotBytes;
    store.abandon(row[load]);
    release(load);
  }

  private void release(int load) {
    int ssd = ssdRow[load];
    map.setLoad(ssd, 0);
    segments.removeReader(map.segment(ssd));
    free[freeCount++] = load;
  }

  /**
   * A read is done.
   *
   * @return the SSD row when its block is damaged or can not be read; −1 when all is well
   */
  int completed(int load, int result, long nowNs) {
    int ssd = ssdRow[load];
    int at = row[load];
    long read = result == SsdPort.OK ? store.spaceOf(at).blockBytes : 0;
    speed.end(segments.path(map.segment(ssd)), read, nowNs);
    if (result != SsdPort.OK) {
      failures[result]++;
      abandon(load);
      return ssd;
    }
    if (store.spaceOf(at).isCleared()) {
      abandon(load);
      return -1;
    }
    Namespaces.Space space = store.spaceOf(at);
    bytes -= space.size.slotBytes;
    loads++;
    loadedBytes += space.blockBytes;
    if (store.sealLoaded(at, livingParent(load))) {
      hold(at, nowNs);
    }
    release(load);
    return -1;
  }

  int segment(int load) {
    return map.segment(ssdRow[load]);
  }

  private int livingParent(int load) {
    int before = parent[load];
    boolean lives =
        before >= 0
            && store.isResident(before)
            && store.allocation(before) == parentAllocation[load];
    return lives ? before : -1;
  }

  private void hold(int at, long nowNs) {
    store.setMark(at, BlockIndex.SSD_KNOWN);
    if (heldTail - heldHead == MAX_HELD) {
      return;
    }
    int place = (int) heldTail++ & (MAX_HELD - 1);
    heldRow[place] = at;
    heldAllocation[place] = store.allocation(at);
    heldUntilNs[place] = nowNs + HOLD_NS;
    store.setMark(at, BlockIndex.HELD_LOAD);
    store.pin(at);
    heldBytes += store.spaceOf(at).size.slotBytes;
  }

  /** Somebody leases the row: it needs no pin of the tier any more. */
  void leased(int at) {
    store.clearMark(at, BlockIndex.HELD_LOAD);
    heldBytes -= store.spaceOf(at).size.slotBytes;
    store.unpin(at);
  }

  /** Lets go of what nobody came for. */
  void expireHolds(long nowNs) {
    while (heldHead < heldTail) {
      int place = (int) heldHead & (MAX_HELD - 1);
      int at = heldRow[place];
      boolean same =
          store.isResident(at)
              && store.allocation(at) == heldAllocation[place]
              && store.hasMark(at, BlockIndex.HELD_LOAD);
      if (same && nowNs - heldUntilNs[place] < 0) {
        return;
      }
      if (same) {
        leased(at);
      }
      heldHead++;
    }
  }

  /** How fast the files are read. */
  SsdSpeed speed() {
    return speed;
  }

  /** Loads that wait or are being read. */
  int active() {
    return MAX_LOADS - freeCount;
  }

  /** Bytes of rows that the tier pins. */
  long pinnedBytes() {
    return bytes + heldBytes;
  }
}
