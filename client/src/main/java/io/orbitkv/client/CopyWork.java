package io.orbitkv.client;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Copy of one plan, in shares between which it can be stopped. The driver of its operation claims
 * share after share; other threads may {@link #help} meanwhile. A share is claimed once, and copied
 * whole by whoever claimed it. Every access of a helper lies between its entry and its leaving, and
 * {@link #close()} lets nobody in any more and tells when all have left: only then the driver may
 * say that the copy has ended. A share allocates nothing.
 */
abstract sealed class CopyWork permits PublishCopy, RestoreCopy {
  /** Most bytes of a share, but for single blocks. */
  static final long MOST_SHARE_BYTES = 8 << 20;

  /** Bytes from which help pays: copying them takes some five times as long as waking a thread. */
  static final long SHARED_FROM_BYTES = 4 << 20;

  /** Shares get smaller towards the end, down to this, so that all end at about the same time. */
  private static final long LEAST_SHARE_BYTES = 1 << 20;

  private static final int SHARES_OF_THE_REST = 4;

  private static final long NONE = -1;
  private static final int ENTRY_BITS = 20;
  private static final int ENTRY_MASK = (1 << ENTRY_BITS) - 1;

  /** Added to the number of helpers once nobody is let in. */
  private static final int CLOSED = Integer.MIN_VALUE;

  final Plan plan;
  final Target target;
  final MemorySegment[] arenas;

  /** Tools of the driver. */
  final CopyTools tools;

  /** Entries that are left out; written before the first share is claimed. */
  final BitSet failed = new BitSet();

  private final int layers;
  private final long totalBytes;

  /** Layer and entry from which the next share is claimed. */
  private final AtomicLong next = new AtomicLong();

  /** Entries of each layer that have arrived. */
  private final AtomicIntegerArray arrived;

  private final AtomicLong bytes = new AtomicLong();
  private final AtomicInteger helpers = new AtomicInteger();
  private volatile Throwable failure;

  /**
   * A copy of a plan.
   *
   * @param layers times that the entries are gone through, 0 for an empty plan
   */
  CopyWork(Plan plan, Target target, MemorySegment[] arenas, CopyTools tools, int layers) {
    this.plan = plan;
    this.target = target;
    this.arenas = arenas;
    this.tools = tools;
    this.layers = layers;
    this.arrived = new AtomicIntegerArray(layers);
    long total = 0;
    for (int i = 0; i < plan.size; i++) {
      total += group(i).blockBytes;
    }
    this.totalBytes = total;
  }

  /** Does what comes before the first share, by the driver alone; false when nothing is left. */
  abstract boolean prepare();

  /**
   * End of the share that begins with an entry.
   *
   * @param mostBytes bytes after which it ends, but for its first entry
   */
  abstract int shareEnd(int layer, int first, long mostBytes);

  /** Copies a share; returns its bytes. */
  abstract long copy(int layer, int first, int end, CopyTools with);

  /** Entries whose accesses have ended well; all of them once the copy is closed. */
  abstract int entriesDone();

  // For the driver.

  /**
   * Does some work.
   *
   * @return false when all is done or claimed, or the copy is closed
   */
  final boolean step() {
    if (prepare()) {
      return true;
    }
    long share = claim();
    if (share == NONE) {
      return false;
    }
    copyShare(share, tools);
    return hasShares();
  }

  /**
   * True when other threads should help: not before the first share, after which the Manager has
   * ceased to spin and left a processor free.
   */
  final boolean wantsHelp() {
    return isLarge() && bytes() >= LEAST_SHARE_BYTES;
  }

  /** True when other threads may help. */
  final boolean isLarge() {
    return totalBytes >= SHARED_FROM_BYTES;
  }

  /** True from shortly before the end on, about as long as a sleeping Manager takes to wake. */
  abstract boolean endsSoon();

  /** Lets nobody in any more; true once all helpers have left. */
  final boolean close() {
    int count = helpers.get();
    while (count >= 0 && !helpers.compareAndSet(count, count | CLOSED)) {
      count = helpers.get();
    }
    return helpers.get() == CLOSED;
  }

  /** True once {@link #close()} was called, or a helper failed. */
  final boolean isClosed() {
    return helpers.get() < 0;
  }

  /** Why a helper failed; null when none did. */
  final Throwable failure() {
    return failure;
  }

  // For helpers.

  /**
   * Copies one share, if one is left and helpers are let in.
   *
   * @param operation takes note of it: its driver may be long in getting back to a processor
   * @return true when the helper was inside, so that the driver may have had to wait for it
   */
  final boolean help(CopyTools.Pool pool, EngineOperation operation) {
    if (!hasShares() || !enter()) {
      return false;
    }
    try {
      long share = claim();
      if (share != NONE) {
        PausePoints.reached(this instanceof PublishCopy, "helping");
        CopyTools own = pool.take();
        copyShare(share, own);
        pool.giveBack(own);
        operation.shareCopied(this);
      }
      return true;
    } catch (Throwable t) { // the driver tells
      failure = t;
      close();
      return true;
    } finally {
      leave();
    }
  }

  /** Begins accesses of a helper; false when nobody is let in. */
  final boolean enter() {
    int count = helpers.get();
    while (count >= 0) {
      if (helpers.compareAndSet(count, count + 1)) {
        return true;
      }
      count = helpers.get();
    }
    return false;
  }

  /** Every access of the helper has ended. */
  final void leave() {
    helpers.decrementAndGet();
  }

  // For both.

  /** True while shares are left to claim. */
  final boolean hasShares() {
    return layerOf(next.get()) < layers && !isClosed();
  }

  private void copyShare(long share, CopyTools with) {
    int layer = layerOf(share);
    int first = firstOf(share);
    int end = endOf(share);
    bytes.addAndGet(copy(layer, first, end, with));
    arrived.addAndGet(layer, end - first);
  }

  private long claim() {
    while (!isClosed()) {
      long at = next.get();
      int layer = layerOf(at);
      if (layer == layers) {
        return NONE;
      }
      int first = firstOf(at);
      int end = shareEnd(layer, first, shareBytes());
      long after = end == plan.size ? share(layer + 1, 0, 0) : share(layer, end, 0);
      if (next.compareAndSet(at, after)) {
        return share(layer, first, end);
      }
    }
    return NONE;
  }

  private long shareBytes() {
    if (!isLarge()) {
      return MOST_SHARE_BYTES;
    }
    return bytes() < LEAST_SHARE_BYTES
        ? LEAST_SHARE_BYTES
        : Math.clamp(bytesLeft() / SHARES_OF_THE_REST, LEAST_SHARE_BYTES, MOST_SHARE_BYTES);
  }

  private static long share(int layer, int first, int end) {
    return ((long) layer << (2 * ENTRY_BITS)) | ((long) first << ENTRY_BITS) | end;
  }

  private static int layerOf(long share) {
    return (int) (share >>> (2 * ENTRY_BITS));
  }

  private static int firstOf(long share) {
    return (int) (share >>> ENTRY_BITS) & ENTRY_MASK;
  }

  private static int endOf(long share) {
    return (int) share & ENTRY_MASK;
  }

  final int layers() {
    return layers;
  }

  /** Entries of a layer that have arrived. */
  final int arrived(int layer) {
    return arrived.get(layer);
  }

  /** Bytes that have arrived. */
  final long bytes() {
    return bytes.get();
  }

  final long bytesLeft() {
    return totalBytes - bytes.get();
  }

  final GroupMemory group(int entry) {
    return target.groups()[target.groupIds()[plan.block[entry]]];
  }

  final int page(int entry) {
    return target.pages()[plan.block[entry]];
  }
}
