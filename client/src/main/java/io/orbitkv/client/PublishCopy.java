package io.orbitkv.client;

import io.orbitkv.channel.PlanEntry;
import java.lang.foreign.MemorySegment;

/**
 * Copies blocks from pages to arenas, and leaves each block's sum in the plan. A share is a block;
 * of a large copy it is some, when they are small.
 */
final class PublishCopy extends CopyWork {
  /** What a thread copies and sums in some 70 microseconds. */
  private static final long WAKE_AHEAD_BYTES = 1 << 20;

  /** Most bytes of a share, but for single blocks: some 20 microseconds, many times its claim. */
  private static final long MOST_GATHERED_BYTES = 256 << 10;

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
    int end = first + 1;
    if (isLarge()) {
      long bytes = group(first).blockBytes;
      while (end < plan.size && bytes + group(end).blockBytes <= MOST_GATHERED_BYTES) {
        bytes += group(end).blockBytes;
        end++;
      }
    }
    return end;
  }

  @Override
  long copy(int layer, int first, int end, CopyTools with) {
    long bytes = 0;
    for (int entry = first; entry < end; entry++) {
      bytes += copy(entry, with);
    }
    return bytes;
  }

  private long copy(int entry, CopyTools with) {
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
