package io.orbitkv.client;

import io.orbitkv.channel.PlanEntry;
import java.lang.foreign.MemorySegment;

/**
 * Copies blocks from arenas to pages: first, when asked, the sum of every source, then layer 0 of
 * every block, layer 1 and so on. A share is some blocks of a layer. A sum that differs is left in
 * the plan, where the Manager sees it.
 */
final class RestoreCopy extends CopyWork {
  private final MemorySegment bank;
  private int checked;
  private volatile int layersDone;

  RestoreCopy(
      Plan plan,
      Target target,
      MemorySegment[] arenas,
      CopyTools tools,
      boolean verify,
      MemorySegment bank) {
    super(plan, target, arenas, tools, mostLayers(plan, target));
    this.bank = bank;
    this.checked = verify ? 0 : plan.size;
  }

  private static int mostLayers(Plan plan, Target target) {
    int most = 0;
    for (int i = 0; i < plan.size; i++) {
      most = Math.max(most, target.groups()[target.groupIds()[plan.block[i]]].layers);
    }
    return most;
  }

  /** Layers whose pieces have all arrived, those before them included. For whoever is inside. */
  int layersDone() {
    int done = layersDone;
    while (done < layers() && arrived(done) == plan.size) {
      done++;
    }
    layersDone = done; // perhaps less than another thread has just seen: both have arrived
    return done;
  }

  @Override
  int entriesDone() {
    return layersDone() == layers() ? plan.size - failed.cardinality() : 0;
  }

  /** Never: nobody waits for the Manager once the blocks have arrived. */
  @Override
  boolean endsSoon() {
    return false;
  }

  @Override
  boolean prepare() {
    if (checked == plan.size) {
      return false;
    }
    int arena = plan.arena[checked];
    long length = group(checked).blockBytes;
    int sum = tools.copier.checksum(tools.views[arena], plan.offset[checked], length);
    if (sum != plan.crc[checked]) {
      failed.set(checked);
      PlanEntry.putCrc(bank, plan.entryAt(checked), sum);
    }
    checked++;
    return true;
  }

  @Override
  int shareEnd(int layer, int first, long mostBytes) {
    int end = first;
    long bytes = 0;
    while (end < plan.size && bytes < mostBytes) {
      bytes += isLeftOut(end, layer) ? 0 : layerBytes(group(end), layer);
      end++;
    }
    return end;
  }

  private boolean isLeftOut(int entry, int layer) {
    return failed.get(entry) || layer >= group(entry).layers;
  }

  private static long layerBytes(GroupMemory group, int layer) {
    long bytes = 0;
    for (int piece = group.firstPiece[layer]; piece < group.firstPiece[layer + 1]; piece++) {
      bytes += group.length[piece];
    }
    return bytes;
  }

  @Override
  long copy(int layer, int first, int end, CopyTools with) {
    long bytes = 0;
    int entry = first;
    while (entry < end) {
      GroupMemory group = group(entry);
      int next = entry + 1;
      if (!isLeftOut(entry, layer)) {
        int piece = group.firstPiece[layer];
        int lastPiece = group.firstPiece[layer + 1] - 1;
        if (piece == lastPiece) {
          next = runEnd(group, piece, entry, end);
          bytes += copy(entry, group, piece, (next - entry) * group.length[piece], with);
        } else {
          for (; piece <= lastPiece; piece++) {
            bytes += copy(entry, group, piece, group.length[piece], with);
          }
        }
      }
      entry = next;
    }
    return bytes;
  }

  /** End of the blocks that lie one behind the other on both sides: one copy serves them all. */
  private int runEnd(GroupMemory group, int piece, int entry, int end) {
    int next = entry + 1;
    while (next < end && isContinued(group, piece, next - 1)) {
      next++;
    }
    return next;
  }

  private boolean isContinued(GroupMemory group, int piece, int last) {
    int next = last + 1;
    long length = group.length[piece];
    return !failed.get(next)
        && group(next) == group
        && plan.arena[next] == plan.arena[last]
        && plan.offset[next] == plan.offset[last] + length
        && group.stride[piece] == length
        && page(next) == page(last) + 1;
  }

  private long copy(int entry, GroupMemory group, int piece, long length, CopyTools with) {
    with.copier.copy(
        arenas[plan.arena[entry]],
        plan.offset[entry] + group.blockOffset[piece],
        group.memory[piece],
        group.base[piece] + page(entry) * group.stride[piece],
        length);
    return length;
  }
}
