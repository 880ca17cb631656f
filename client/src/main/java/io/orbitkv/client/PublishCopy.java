package io.orbitkv.client;

import io.orbitkv.channel.PlanEntry;
import java.lang.foreign.MemorySegment;

/**
 * Copies blocks from pages to arenas, and leaves each block's sum in the plan. A share is a block.
 */
final class PublishCopy extends CopyWork {
  /** What a thread copies and sums in some 70 microseconds. */
  private static final long WAKE_AHEAD_BYTES = 1 << 20;

  private final MemorySegment bank;

  PublishCopy(
      Plan plan, Target target, MemorySegment[] arenas, CopyTools tools, MemorySegment bank) {
    super(plan, target, arenas, tools, Math.min(1, plan.size));
    this.bank = bank;
  }

  @Override
  boolean prepare() {
    return false;
  }

  @Override
  boolean endsSoon() {
    return bytesLeft() <= WAKE_AHEAD_BYTES;
  }

  @Override
  int entriesDone() {
    return layers() == 0 ? 0 : arrived(0);
  }

  @Override
  int shareEnd(int layer, int first, long mostBytes) {
    return first + 1;
  }

  @Override
  long copy(int layer, int entry, int end, CopyTools with) {
    GroupMemory group = group(entry);
    with.copier.beginChecksum();
    for (int piece = 0; piece < group.length.length; piece++) {
      with.copier.copySummed(
          group.memory[piece],
          group.base[piece] + page(entry) * group.stride[piece],
          with.views[plan.arena[entry]],
          plan.offset[entry] + group.blockOffset[piece],
          group.length[piece]);
    }
    PlanEntry.putCrc(bank, plan.entryAt(entry), with.copier.endChecksum());
    return group.blockBytes;
  }
}
