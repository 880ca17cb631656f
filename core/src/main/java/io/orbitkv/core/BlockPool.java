package io.orbitkv.core;

import io.orbitkv.channel.Memory;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Cuts the arenas into slabs of one size, each of which holds slots of one block size. An empty
 * slab belongs to no size again, so block sizes never fragment the pool. Addresses are (slab,
 * slot); an allocation id is never used twice in an arena, whatever its offset.
 */
final class BlockPool {
  /** Slots are multiples of this, so that later direct I/O finds them aligned. */
  static final int SLOT_ALIGNMENT = 512;

  private static final int NONE = -1;

  /** Slots of one size. */
  static final class SizeClass {
    final int index;
    final int slotBytes;
    final int slotsPerSlab;
    private int firstPartial = NONE;
    private long used;
    private long pinned;

    SizeClass(int index, int slotBytes, int slotsPerSlab) {
      this.index = index;
      this.slotBytes = slotBytes;
      this.slotsPerSlab = slotsPerSlab;
    }
  }

  private final long slabBytes;
  private final long capacityBytes;
  private final int[] arenaOfSlab;
  private final long[] offsetOfSlab;
  private final long[] lastAllocation;
  private final SizeClass[] classOfSlab;
  private final long[][] usedBits;
  private final MemorySegment[] rowOfSlot;
  private final int[] used;
  private final int[] firstFreeWord;
  private final int[] pinned;
  private final int[] lastTouch;
  private final int[] nextPartial;
  private final int[] previousPartial;
  private final int[] freeSlabs;
  private int freeSlabCount;
  private long usedBytes;
  private final Map<Integer, SizeClass> classes = new HashMap<>();
  private final MetadataMemory memory;

  BlockPool(CoreConfig config) {
    this.slabBytes = config.slabBytes();
    this.capacityBytes = Arrays.stream(config.arenaBytes()).sum();
    this.memory = config.memory();
    int slabs = Math.toIntExact(capacityBytes / slabBytes);
    arenaOfSlab = new int[slabs];
    offsetOfSlab = new long[slabs];
    lastAllocation = new long[config.arenaBytes().length];
    classOfSlab = new SizeClass[slabs];
    usedBits = new long[slabs][];
    rowOfSlot = new MemorySegment[slabs];
    used = new int[slabs];
    firstFreeWord = new int[slabs];
    pinned = new int[slabs];
    lastTouch = new int[slabs];
    nextPartial = new int[slabs];
    previousPartial = new int[slabs];
    freeSlabs = new int[slabs];
    layOut(config.arenaBytes());
  }

  private void layOut(long[] arenaBytes) {
    int slab = 0;
    for (int arena = 0; arena < arenaBytes.length; arena++) {
      for (long offset = 0; offset < arenaBytes[arena]; offset += slabBytes) {
        arenaOfSlab[slab] = arena;
        offsetOfSlab[slab] = offset;
        slab++;
      }
    }
    for (int i = 0; i < slab; i++) {
      freeSlabs[i] = slab - 1 - i; // taken from the end: low offsets first
    }
    freeSlabCount = slab;
  }

  /** The class for blocks of so many bytes, or null when a block is larger than a slab. */
  SizeClass sizeClass(int blockBytes) {
    long slot = (blockBytes + (long) SLOT_ALIGNMENT - 1) & -SLOT_ALIGNMENT;
    if (slot > slabBytes) {
      return null;
    }
    return classes.computeIfAbsent(
        (int) slot, bytes -> new SizeClass(classes.size(), bytes, (int) (slabBytes / bytes)));
  }

  int classCount() {
    return classes.size();
  }

  /** True when a slot of this class can be taken without an eviction. */
  boolean hasRoom(SizeClass size) {
    return size.firstPartial != NONE || freeSlabCount > 0;
  }

  /**
   * Takes a slot for a row and returns its slab; the slot is {@link #slotTaken}. Needs {@link
   * #hasRoom}.
   */
  int take(SizeClass size, int row) {
    if (size.firstPartial == NONE) {
      assign(freeSlabs[--freeSlabCount], size);
    }
    int slab = size.firstPartial;
    long[] bits = usedBits[slab];
    int word = firstFreeWord[slab];
    while (bits[word] == -1L) {
      word++;
    }
    int slot = (word << 6) + Long.numberOfTrailingZeros(~bits[word]);
    bits[word] |= 1L << slot;
    firstFreeWord[slab] = word;
    Memory.putInt(rowOfSlot[slab], (long) slot * Integer.BYTES, row);
    size.used++;
    if (++used[slab] == size.slotsPerSlab) {
      unlink(slab, size);
    }
    usedBytes += size.slotBytes;
    slotTaken = slot;
    return slab;
  }

  /** Slot of the last {@link #take}. */
  int slotTaken;

  /** Next allocation id of the slab's arena. */
  long nextAllocation(int slab) {
    return ++lastAllocation[arenaOfSlab[slab]];
  }

  /** Gives a slot back; an empty slab returns to the pool. */
  void free(int slab, int slot) {
    SizeClass size = classOfSlab[slab];
    long bit = 1L << slot;
    if ((usedBits[slab][slot >> 6] & bit) == 0) {
      throw new IllegalStateException("slot freed twice: slab=" + slab + ", slot=" + slot);
    }
    usedBits[slab][slot >> 6] &= ~bit;
    firstFreeWord[slab] = Math.min(firstFreeWord[slab], slot >> 6);
    if (used[slab]-- == size.slotsPerSlab) {
      link(slab, size);
    }
    usedBytes -= size.slotBytes;
    size.used--;
    if (used[slab] == 0) {
      unlink(slab, size);
      classOfSlab[slab] = null;
      freeSlabs[freeSlabCount++] = slab;
    }
  }

  private void assign(int slab, SizeClass size) {
    classOfSlab[slab] = size;
    int words = (size.slotsPerSlab + 63) >> 6;
    long[] bits = usedBits[slab];
    if (bits == null || bits.length != words) {
      bits = new long[words];
      usedBits[slab] = bits;
    }
    Arrays.fill(bits, 0);
    if ((size.slotsPerSlab & 63) != 0) {
      bits[words - 1] = -1L << size.slotsPerSlab; // slots that do not exist are never free
    }
    if (rowOfSlot[slab] == null) { // made for the smallest blocks, touched as far as used
      rowOfSlot[slab] = memory.allocate(slabBytes / SLOT_ALIGNMENT * Integer.BYTES);
    }
    firstFreeWord[slab] = 0;
    link(slab, size);
  }

  private void link(int slab, SizeClass size) {
    nextPartial[slab] = size.firstPartial;
    previousPartial[slab] = NONE;
    if (size.firstPartial != NONE) {
      previousPartial[size.firstPartial] = slab;
    }
    size.firstPartial = slab;
  }

  private void unlink(int slab, SizeClass size) {
    int next = nextPartial[slab];
    int previous = previousPartial[slab];
    if (previous == NONE) {
      size.firstPartial = next;
    } else {
      nextPartial[previous] = next;
    }
    if (next != NONE) {
      previousPartial[next] = previous;
    }
  }

  /** Counts rows of a slab that are pinned. */
  void addPinned(int slab, int delta) {
    pinned[slab] += delta;
    classOfSlab[slab].pinned += delta;
  }

  /** Notes that a row of the slab was used. */
  void touch(int slab, int stamp) {
    lastTouch[slab] = stamp;
  }

  /** Age stamp of the slab's latest use. */
  int lastTouch(int slab) {
    return lastTouch[slab];
  }

  /** True when every row of the class is pinned. */
  static boolean allPinned(SizeClass size) {
    return size.pinned >= size.used;
  }

  /** True when a slab holds rows of another class, none of them pinned. */
  boolean isReclaimable(int slab, SizeClass size) {
    SizeClass other = classOfSlab[slab];
    return other != null && other != size && pinned[slab] == 0;
  }

  /**
   * Slab of another class without pinned rows whose latest use is the oldest; -1 when there is
   * none.
   */
  int coldestSlabOfOthers(SizeClass size, int now) {
    int coldest = NONE;
    int oldestAge = -1;
    for (int slab = 0; slab < classOfSlab.length; slab++) {
      if (isReclaimable(slab, size) && now - lastTouch[slab] > oldestAge) {
        oldestAge = now - lastTouch[slab];
        coldest = slab;
      }
    }
    return coldest;
  }

  /** Row in a slot, or -1 when the slot is free or does not exist. */
  int rowAt(int slab, int slot) {
    SizeClass size = classOfSlab[slab];
    boolean taken =
        size != null && slot < size.slotsPerSlab && (usedBits[slab][slot >> 6] & 1L << slot) != 0;
    return taken ? Memory.getInt(rowOfSlot[slab], (long) slot * Integer.BYTES) : NONE;
  }

  SizeClass classOf(int slab) {
    return classOfSlab[slab];
  }

  int arena(int slab) {
    return arenaOfSlab[slab];
  }

  long offset(int slab, int slot) {
    return offsetOfSlab[slab] + (long) slot * classOfSlab[slab].slotBytes;
  }

  int slotsPerSlab(int slab) {
    return classOfSlab[slab].slotsPerSlab;
  }

  long slabBytes() {
    return slabBytes;
  }

  long capacityBytes() {
    return capacityBytes;
  }

  long usedBytes() {
    return usedBytes;
  }

  int slabs() {
    return classOfSlab.length;
  }

  int freeSlabs() {
    return freeSlabCount;
  }
}
