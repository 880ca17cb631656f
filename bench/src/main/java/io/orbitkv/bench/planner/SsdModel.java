package io.orbitkv.bench.planner;

/**
 * DRAM as the core runs it, over a model of the SSD tier: a log of blocks, the oldest overwritten
 * first, each written at most once while it is there. A block that only SSD has is loaded and is in
 * DRAM afterwards.
 */
final class SsdModel implements PrefixCache {
  /** When a block is written. */
  enum WritePolicy {
    /** When it is stored. */
    ALL,
    /** When it is hit for the first time. */
    REUSE
  }

  private final PrefixCache dram;
  private final int capacity;
  private final WritePolicy policy;
  private final IdQueues log;
  private long writtenBlocks;

  SsdModel(PrefixCache dram, int ids, int capacity, WritePolicy policy) {
    this.dram = dram;
    this.capacity = capacity;
    this.policy = policy;
    this.log = new IdQueues(ids, 1);
  }

  @Override
  public int request(int[] ids) {
    int inDram = dram.request(ids);
    int hit = inDram;
    while (hit < ids.length && isWritten(ids[hit])) {
      hit++;
    }
    int first = policy == WritePolicy.ALL ? hit : 0;
    int end = policy == WritePolicy.ALL ? ids.length : inDram;
    for (int i = first; i < end; i++) {
      write(ids[i]);
    }
    return hit;
  }

  private boolean isWritten(int id) {
    return log.of(id) == 0;
  }

  private void write(int id) {
    if (isWritten(id)) {
      return;
    }
    if (log.size(0) == capacity) {
      log.remove(log.oldest(0));
    }
    log.move(id, 0);
    writtenBlocks++;
  }

  /** Blocks written so far. */
  long writtenBlocks() {
    return writtenBlocks;
  }

  @Override
  public void close() {
    dram.close();
  }
}
