package io.orbitkv.bench.planner;

import io.orbitkv.core.CacheCore;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdPort;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;

/** Files without bytes, in which everything that was asked for is done at the next step. */
final class InstantSsd implements SsdPort {
  private static final int SEGMENTS = 64;
  private static final int DEPTH = 64;

  private final ArrayDeque<Integer> asked = new ArrayDeque<>();

  /**
   * Configuration of a tier that holds so many blocks of at most a page, rounded up to whole
   * segments.
   */
  static SsdConfig config(int blocks, SsdConfig.WritePolicy policy) {
    int pages = Math.ceilDiv(blocks, SEGMENTS);
    int segments = Math.ceilDiv(blocks, pages) + 1; // one is always being filled or emptied
    return new SsdConfig(
        new int[segments], 1, 1, 1 + pages, DEPTH, policy, 0, SsdConfig.DEFAULT_STALL_NS);
  }

  /** Lets the core do all that it wants of the tier. */
  void settle(CacheCore core, long nowNs) {
    do {
      while (!asked.isEmpty()) {
        core.ssdCompleted(asked.remove(), OK, nowNs);
      }
    } while (core.ssdStep(nowNs) > 0 || !asked.isEmpty());
  }

  @Override
  public void read(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    asked.add(request);
  }

  @Override
  public void write(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    asked.add(request);
  }

  @Override
  public void openSegment(int request, int segment, long generation) {
    asked.add(request);
  }

  @Override
  public boolean addEntry(
      int segment,
      MemorySegment hashes,
      long hash,
      MemorySegment namespace,
      int group,
      int hashBytes,
      int page,
      int length,
      int crc) {
    return true;
  }

  @Override
  public void writeTable(int request, int segment, long lifetimeBytes, boolean close) {
    asked.add(request);
  }

  @Override
  public void writeClear(int request, MemorySegment namespace, long before, long oldest) {
    asked.add(request);
  }
}
