package io.orbitkv.core;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongSupplier;

/**
 * The eviction policy of the core over rows of its index, without pool, sessions or bytes, full of
 * chains from the start on: measures what the policy alone costs. Only its own calls are timed; the
 * index is kept up to date between them. Clock and random numbers are the caller's. For one thread.
 */
public final class PolicyDriver {
  private static final int HASH_BYTES = 32;
  private static final int CHAIN = 4; // short, so that many rows are listed and may go
  private static final int SIZE_CLASS = 0;
  private static final int SLOTS = 1 << 20;

  private final BlockIndex index;
  private final EvictionPolicy policy;
  private final MemorySegment hash = Arena.ofAuto().allocate(HASH_BYTES, Long.BYTES);
  private final LongSupplier nanoTime;
  private final LongSupplier random;
  private final int blocks;
  private final int[] rows;
  private long stored;
  private int parent = -1;

  /**
   * A full cache.
   *
   * @param blocks blocks that it holds, at least {@code most}
   * @param most most blocks of one call
   * @param nanoTime clock in nanoseconds
   * @param random numbers of 64 random bits
   */
  public PolicyDriver(int blocks, int most, LongSupplier nanoTime, LongSupplier random) {
    this.blocks = blocks;
    this.nanoTime = nanoTime;
    this.random = random;
    this.rows = new int[most];
    long maxRows = (long) blocks + most;
    MetadataMemory memory = bytes -> Arena.ofAuto().allocate(bytes, 64);
    index = new BlockIndex(maxRows, memory);
    policy = new ReusePolicy(maxRows, memory, index);
    while (index.resident() < blocks) {
      insert(1);
    }
  }

  /** Publishes new blocks; returns nanoseconds that the policy took, the step of time included. */
  public long insert(int count) {
    for (int i = 0; i < count; i++) {
      rows[i] = newRow(stored + i);
    }
    long start = nanoTime.getAsLong();
    policy.tick();
    for (int i = 0; i < count; i++) {
      int at = (int) (stored++ % CHAIN);
      policy.added(rows[i], SIZE_CLASS, at == 0 ? -1 : parent, CHAIN - at);
      parent = rows[i];
    }
    return nanoTime.getAsLong() - start;
  }

  private int newRow(long allocation) {
    int row = index.takeRow();
    for (int word = 0; word < HASH_BYTES; word += Long.BYTES) {
      hash.set(ValueLayout.JAVA_LONG, word, random.getAsLong());
    }
    index.fill(row, 0, hash, 0, HASH_BYTES, allocation, 0, row % SLOTS);
    index.insert(row);
    return row;
  }

  /** Uses resident blocks at random; returns nanoseconds that the policy took. */
  public long hit(int count) {
    for (int i = 0; i < count; i++) {
      rows[i] = (int) Long.remainderUnsigned(random.getAsLong(), blocks);
    }
    long start = nanoTime.getAsLong();
    for (int i = 0; i < count; i++) {
      policy.touched(rows[i], SIZE_CLASS);
    }
    return nanoTime.getAsLong() - start;
  }

  /** Evicts blocks, for an {@link #insert} of as many; returns nanoseconds that the policy took. */
  public long evict(int count) {
    long start = nanoTime.getAsLong();
    for (int i = 0; i < count; i++) {
      rows[i] = policy.victim(SIZE_CLASS);
      policy.removed(rows[i], SIZE_CLASS);
    }
    long time = nanoTime.getAsLong() - start;
    for (int i = 0; i < count; i++) {
      parent = rows[i] == parent ? -1 : parent;
      index.remove(rows[i]);
      index.freeRow(rows[i]);
    }
    return time;
  }
}
