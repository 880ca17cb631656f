package io.orbitkv.core;

import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Protocol;
import java.lang.foreign.MemorySegment;

/**
 * All blocks: allocation, pins, sealing, eviction. A row is unsealed from {@link #allocate} on,
 * resident from {@link #seal} on, and gone when it is evicted or given up. Only rows without pins
 * are evicted.
 */
final class BlockStore {
  /** Publishes within which a chain counts as just touched: the resident blocks shifted by this. */
  private static final int RECENT_SHIFT = 6;

  /** Most rows that one search for a victim in the middle of a chain looks at. */
  private static final int MAX_SEARCH = 65_536;

  private final BlockPool pool;
  private final BlockIndex index;
  private final EvictionPolicy policy;
  private final MissHistory history;
  private final Namespaces namespaces;
  private BlockPool.SizeClass coldestFor;
  private int coldest;
  private int hand; // where the search for a victim in the middle of a chain goes on
  private int continued = -1; // what is being stored continues this row
  private boolean chainIsPinned;

  private SsdTier ssd; // null without one

  private long pinnedRows;
  private long pinRefs;
  private long unsealed;
  private long residentBytes;
  private long shortage;
  long insertions;
  long evictions;
  long evictedBytes;

  BlockStore(CoreConfig config, Namespaces namespaces) {
    this.namespaces = namespaces;
    this.pool = new BlockPool(config);
    long maxRows = Math.min(pool.capacityBytes() / BlockPool.SLOT_ALIGNMENT, 1 << 30);
    this.index = new BlockIndex(maxRows, config.memory());
    this.policy = new ReusePolicy(maxRows, config.memory(), index);
    this.history = new MissHistory(config.memory());
  }

  /** Tells the SSD tier of what is sealed from now on. */
  void setSsd(SsdTier tier) {
    ssd = tier;
    if (tier != null) {
      policy.prefer(tier::holds);
    }
  }

  /** Begins an operation. */
  void nextOperation() {
    coldestFor = null;
  }

  /** Begins a publish: everything used from now on is newer than all before. */
  void nextPublish() {
    policy.tick();
    coldestFor = null;
  }

  private BlockPool.SizeClass sizeOf(int row) {
    return namespaces.space(index.space(row)).size;
  }

  /**
   * Takes a row and a slot for a block, evicting what must go; -1 when nothing may go. The row has
   * one pin.
   */
  int allocate(Namespaces.Space space, MemorySegment data, long hash, int hashBytes) {
    if (!pool.hasRoom(space.size) && !makeRoom(space.size)) {
      return -1;
    }
    int row = index.takeRow();
    if (row < 0) {
      return -1;
    }
    int slab = pool.take(space.size, row);
    index.fill(
        row, space.id, data, hash, hashBytes, pool.nextAllocation(slab), slab, pool.slotTaken);
    unsealed++;
    pin(row);
    return row;
  }

  private boolean makeRoom(BlockPool.SizeClass size) {
    if (coldestFor != size) { // looked for once an operation and block size
      coldest = pool.classCount() > 1 ? pool.coldestSlabOfOthers(size, policy.now()) : -1;
      coldestFor = size;
    }
    int victim = BlockPool.allPinned(size) ? -1 : victim(size);
    boolean othersColder =
        coldest >= 0
            && pool.isReclaimable(coldest, size)
            && (victim < 0 || pool.lastTouch(coldest) - policy.oldestStamp(size.index) < 0);
    if (othersColder) {
      evictSlab(coldest);
      coldestFor = null;
      return true;
    }
    if (victim < 0) {
      return false;
    }
    evict(victim);
    return true;
  }

  /**
   * What is stored until {@link #endSection} continues a resident row, which is pinned: its chain
   * does not give way to it.
   *
   * @param parent -1 for none
   */
  void beginSection(int parent) {
    continued = parent;
  }

  /** Ends what {@link #beginSection} began. */
  void endSection() {
    if (chainIsPinned) {
      pinChain(-1);
    }
    continued = -1;
  }

  private void pinChain(int pins) {
    for (int at = policy.parent(continued); at >= 0; at = policy.parent(at)) {
      if (pins > 0) {
        pin(at);
      } else {
        unpin(at);
      }
    }
    chainIsPinned = pins > 0;
  }

  /** The policy's victim; where each that it offers is pinned, any row that is not. */
  private int victim(BlockPool.SizeClass size) {
    int victim = policy.victim(size.index);
    if (victim < 0 && continued >= 0 && !chainIsPinned) {
      pinChain(1);
    }
    int end = index.highWater();
    for (int i = Math.min(end, MAX_SEARCH); victim < 0 && i > 0; i--) {
      hand = hand + 1 < end ? hand + 1 : 0;
      boolean mayGo = index.state(hand) == BlockIndex.RESIDENT && index.pins(hand) == 0;
      victim = mayGo && sizeOf(hand) == size ? hand : -1;
    }
    return victim;
  }

  private void evictSlab(int slab) {
    int slots = pool.slotsPerSlab(slab);
    for (int slot = 0; slot < slots; slot++) {
      int row = pool.rowAt(slab, slot); // -1 for free slots, and for all once the slab is empty
      if (row >= 0) {
        evict(row);
      }
    }
  }

  private void evict(int row) {
    Namespaces.Space space = spaceOf(row);
    int slotBytes = space.size.slotBytes;
    noteMiss(index.digest(row), space, MissReason.EVICTED);
    withdraw(row);
    free(row);
    evictions++;
    evictedBytes += slotBytes;
  }

  private void withdraw(int row) {
    BlockPool.SizeClass size = sizeOf(row);
    policy.removed(row, size.index);
    index.remove(row);
    residentBytes -= size.slotBytes;
    namespaces.space(index.space(row)).residentBlocks--;
  }

  private void free(int row) {
    pool.free(index.slab(row), index.slot(row));
    index.freeRow(row);
  }

  /** Finds resident rows; see {@link BlockIndex#find}. */
  int find(
      Namespaces.Space space,
      MemorySegment data,
      long hashes,
      int hashBytes,
      int count,
      int[] out,
      boolean prefix) {
    return index.find(space.id, data, hashes, hashBytes, count, out, prefix);
  }

  /** Finds one resident row; -1 when there is none. */
  int find(Namespaces.Space space, MemorySegment data, long hash, int hashBytes) {
    return index.find(space.id, data, hash, hashBytes);
  }

  /** Why a block is missing; {@code spaceId} is -1 for a space that nobody registered. */
  MissReason missReason(int spaceId, MemorySegment data, long hash, int hashBytes) {
    return history.reason(BlockIndex.digest(data, hash, hashBytes), spaceId);
  }

  /** Lets time pass, for the history of misses. */
  void setNow(long nowNs) {
    history.setNow(nowNs);
  }

  /** Seconds since the last event of a hash, where {@link #missReason} knows one. */
  int missAgeSeconds(MemorySegment data, long hash, int hashBytes) {
    return history.ageSeconds(BlockIndex.digest(data, hash, hashBytes));
  }

  int pins(int row) {
    return index.pins(row);
  }

  /** Notes why a block is missing from now on; of a cleared space, that it was cleared. */
  void noteMiss(long digest, Namespaces.Space space, MissReason reason) {
    Namespaces.Space living = space;
    while (living.isCleared()) {
      living = living.successor;
    }
    history.record(digest, living.id, living == space ? reason : MissReason.CLEARED);
  }

  /**
   * Gives up a resident row whose bytes are not what was published; false when it is in use or
   * gone.
   */
  boolean discard(int row) {
    boolean may = isResident(row) && index.pins(row) == 0;
    if (may) {
      evict(row);
    }
    return may;
  }

  /**
   * Evicts rows of cleared spaces that are not in use.
   *
   * @param from first row to look at
   * @param count most rows to look at
   * @return rows that are still in use
   */
  int sweep(int from, int count) {
    int left = 0;
    int end = Math.min(index.highWater(), from + count);
    for (int row = from; row < end; row++) {
      if (isResident(row) && spaceOf(row).isCleared()) {
        if (index.pins(row) == 0) {
          evict(row);
        } else {
          left++;
        }
      }
    }
    return left;
  }

  /** Rows below this were in use once. */
  int rowEnd() {
    return index.highWater();
  }

  boolean isResident(int row) {
    return index.state(row) == BlockIndex.RESIDENT;
  }

  boolean hasMark(int row, int mark) {
    return index.hasMark(row, mark);
  }

  void setMark(int row, int mark) {
    index.setMark(row, mark);
  }

  void clearMark(int row, int mark) {
    index.clearMark(row, mark);
  }

  /** Memory of the rows' hashes; see {@link BlockIndex#hashAt}. */
  MemorySegment hashes() {
    return index.hashes();
  }

  Namespaces.Space space(int id) {
    return namespaces.space(id);
  }

  /** Notes that the pool had no room for a block, since nothing in it may go. */
  void noteShortage(Namespaces.Space space) {
    shortage += space.size.slotBytes;
  }

  /** Bytes for which the pool had no room since the last call. */
  long takeShortage() {
    long bytes = shortage;
    shortage = 0;
    return bytes;
  }

  /** Notes that a block could not be stored. */
  void noteRefused(Namespaces.Space space, MemorySegment data, long hash, int hashBytes) {
    noteShortage(space);
    history.record(BlockIndex.digest(data, hash, hashBytes), space.id, MissReason.REFUSED);
  }

  void pin(int row) {
    pinRefs++;
    if (index.addPins(row, 1) == 1) {
      pinnedRows++;
      pool.addPinned(index.slab(row), 1);
    }
  }

  void unpin(int row) {
    pinRefs--;
    if (index.addPins(row, -1) == 0) {
      pinnedRows--;
      pool.addPinned(index.slab(row), -1);
    }
  }

  /**
   * Notes a use of resident rows, from the last to the first, so that tails stay older than heads.
   */
  void touch(int[] rows, int count) {
    for (int i = count - 1; i >= 0; i--) {
      touchOne(rows[i]);
    }
  }

  /** Notes that a resident block was published again. */
  void noteReuse(int row) {
    if (ssd != null) {
      ssd.reused(row);
    }
  }

  /** Notes a use of one resident row. */
  void touchOne(int row) {
    policy.touched(row, sizeOf(row).index);
    pool.touch(index.slab(row), policy.now());
  }

  /**
   * Makes a written row resident and unpins it; false, with the row freed, when its key is held
   * meanwhile.
   *
   * @param parent resident row before it in its chain, or -1
   * @param left blocks of its publish from this one on in its chain
   */
  boolean seal(int row, int parent, int left) {
    if (!admit(row, parent, left)) {
      return false;
    }
    insertions++;
    if (ssd != null) {
      ssd.sealed(row);
    }
    return true;
  }

  /** As {@link #seal}, for a block that came from another tier. */
  boolean sealLoaded(int row, int parent) {
    return admit(row, parent, 0);
  }

  private boolean admit(int row, int parent, int left) {
    unpin(row);
    unsealed--;
    Namespaces.Space space = spaceOf(row);
    if (space.isCleared() || index.findSame(row) >= 0) {
      free(row);
      return false;
    }
    BlockPool.SizeClass size = space.size;
    index.insert(row);
    policy.added(row, size.index, parent, left);
    pool.touch(index.slab(row), policy.now());
    history.record(index.digest(row), index.space(row), MissReason.NONE);
    residentBytes += size.slotBytes;
    space.residentBlocks++;
    return true;
  }

  /** Gives up an unsealed row. */
  void abandon(int row) {
    unpin(row);
    unsealed--;
    free(row);
  }

  /**
   * Keeps what a publish continues, and notes a use of the whole chain from this row to its head
   * when it was not used not long ago: then an engine that had it all the time goes on with it.
   */
  void touchChain(int row) {
    if (policy.now() - policy.stamp(row) <= index.resident() >> RECENT_SHIFT) {
      policy.shielded(row, sizeOf(row).index);
      return;
    }
    int at = row;
    for (int i = 0; at >= 0 && i < Protocol.MAX_HASHES; i++) {
      touchOne(at);
      at = policy.parent(at);
    }
  }

  /**
   * The row, when it is resident in the space; else -1. Rows that were not pinned may be others by
   * now.
   */
  int residentIn(Namespaces.Space space, int row) {
    return index.state(row) == BlockIndex.RESIDENT && index.space(row) == space.id ? row : -1;
  }

  /** Resident row with the key of an unsealed one; -1 when there is none. */
  int residentTwin(int row) {
    return index.findSame(row);
  }

  Namespaces.Space spaceOf(int row) {
    return namespaces.space(index.space(row));
  }

  /** Bytes of the rows that an operation owns. */
  long ownedBytes(Operation op) {
    long bytes = 0;
    for (int i = 0; i < op.count; i++) {
      bytes += Operation.isOwned(op.rows[i]) ? sizeOf(op.rows[i]).slotBytes : 0;
    }
    return bytes;
  }

  void setCrc(int row, int crc) {
    index.setCrc(row, crc);
  }

  int arena(int row) {
    return pool.arena(index.slab(row));
  }

  long offset(int row) {
    return pool.offset(index.slab(row), index.slot(row));
  }

  long allocation(int row) {
    return index.allocation(row);
  }

  int crc(int row) {
    return index.crc(row);
  }

  BlockPool pool() {
    return pool;
  }

  BlockIndex index() {
    return index;
  }

  long residentBlocks() {
    return index.resident();
  }

  long residentBytes() {
    return residentBytes;
  }

  long unsealedBlocks() {
    return unsealed;
  }

  long pinnedBlocks() {
    return pinnedRows;
  }

  long pinRefs() {
    return pinRefs;
  }

  long metadataBytes() {
    return index.usedBytes() + policy.usedBytes() + index.highWater() * (long) Integer.BYTES;
  }
}
