package io.orbitkv.client;

import io.orbitkv.channel.PlanEntry;
import java.lang.foreign.MemorySegment;

/** Copies blocks from pages to arenas, block by block, and leaves each block's sum in the plan. */
final class PublishCopy extends CopyWork {
  /** What a thread copies and sums in some 70 microseconds. */
  private static final long WAKE_AHEAD_BYTES = 1 << 20;

  private final MemorySegment bank;
  private final long totalBytes;
  private int entry;

  PublishCopy(
      Plan plan, Target target, MemorySegment[] arenas, CopyTools tools, MemorySegment bank) {
    super(plan, target, arenas, tools);
    this.bank = bank;
    long total = 0;
    for (int i = 0; i < plan.size; i++) {
      total += group(i).blockBytes;
    }
    this.totalBytes = total;
  }

  @Override
  boolean endsSoon() {
    return totalBytes - bytes <= WAKE_AHEAD_BYTES;
  }

  @Override
  int entriesDone() {
    return entry;
  }

  @Override
  boolean step() {
    if (entry == plan.size) {
      return false;
    }
    GroupMemory group = group(entry);
    tools.copier.beginChecksum();
    for (int piece = 0; piece < group.length.length; piece++) {
      tools.copier.copySummed(
          group.memory[piece],
          group.base[piece] + page(entry) * group.stride[piece],
          tools.views[plan.arena[entry]],
          plan.offset[entry] + group.blockOffset[piece],
          group.length[piece]);
    }
    PlanEntry.putCrc(bank, plan.entryAt(entry), tools.copier.endChecksum());
    bytes += group.blockBytes;
    entry++;
    return entry < plan.size;
  }
}
