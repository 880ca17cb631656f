package io.orbitkv.client;

import java.lang.foreign.MemorySegment;

/**
 * Copies blocks from arenas to pages: first, when asked, the sum of every source, then layer 0 of
 * every block, layer 1 and so on.
 */
final class RestoreCopy extends CopyWork {
  private final int layers;
  private int checked;
  private int layer;
  private int entry;

  RestoreCopy(Plan plan, Target target, MemorySegment[] arenas, CopyTools tools, boolean verify) {
    super(plan, target, arenas, tools);
    this.checked = verify ? 0 : plan.size;
    int most = 0;
    for (int i = 0; i < plan.size; i++) {
      most = Math.max(most, group(i).layers);
    }
    this.layers = most;
  }

  /** Layers whose pieces have all arrived. */
  int layersDone() {
    return layer;
  }

  /** Never: nobody waits for the Manager once the blocks have arrived. */
  @Override
  boolean endsSoon() {
    return false;
  }

  @Override
  int entriesDone() {
    return layer == layers ? plan.size - failed.cardinality() : 0;
  }

  @Override
  boolean step() {
    if (checked < plan.size) {
      check();
      return true;
    }
    if (layer == layers) {
      return false;
    }
    long before = bytes;
    while (entry < plan.size && bytes - before < STEP_BYTES) {
      copyPieces();
    }
    if (entry == plan.size) {
      entry = 0;
      layer++;
    }
    return layer < layers;
  }

  private void check() {
    int arena = plan.arena[checked];
    long length = group(checked).blockBytes;
    if (tools.copier.checksum(tools.views[arena], plan.offset[checked], length)
        != plan.crc[checked]) {
      failed.set(checked);
    }
    checked++;
  }

  /** Copies the layer's pieces of one entry, or its only piece with those that follow it. */
  private void copyPieces() {
    GroupMemory group = group(entry);
    if (failed.get(entry) || layer >= group.layers) {
      entry++;
      return;
    }
    int first = group.firstPiece[layer];
    int end = group.firstPiece[layer + 1];
    if (end - first == 1) {
      copyRun(group, first);
      return;
    }
    for (int piece = first; piece < end; piece++) {
      copy(group, piece, group.length[piece]);
    }
    entry++;
  }

  private void copyRun(GroupMemory group, int piece) {
    int last = entry;
    long length = group.length[piece];
    while (isContinued(group, piece, last) && length < RUN_BYTES) {
      length += group.length[piece];
      last++;
    }
    copy(group, piece, length);
    entry = last + 1;
  }

  private boolean isContinued(GroupMemory group, int piece, int last) {
    int next = last + 1;
    long length = group.length[piece];
    return next < plan.size
        && !failed.get(next)
        && group(next) == group
        && plan.arena[next] == plan.arena[last]
        && plan.offset[next] == plan.offset[last] + length
        && group.stride[piece] == length
        && page(next) == page(last) + 1;
  }

  private void copy(GroupMemory group, int piece, long length) {
    MemorySegment source = arenas[plan.arena[entry]];
    tools.copier.copy(
        source,
        plan.offset[entry] + group.blockOffset[piece],
        group.memory[piece],
        group.base[piece] + page(entry) * group.stride[piece],
        length);
    bytes += length;
  }
}
