package io.orbitkv.core;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Files on SSD as a test wants them: requests complete when and in the order that the test says,
 * fail, or never return. What a block holds is its key, as in {@link EngineModel}. A read writes
 * the pool, and a write reads it, only when it completes: memory that was reused meanwhile shows.
 */
final class SimulatedSsd implements SsdPort {
  static final int FIRST_PAGE = 1;

  private record Entry(
      MemorySegment hash, MemorySegment namespace, int group, int bytes, int page, int crc) {}

  private record Table(long generation, List<Entry> entries, long lifetimeBytes) {}

  private record Clear(MemorySegment namespace, long before) {}

  /** One request that has not completed. */
  static final class Pending {
    final int request;
    final boolean isRead;
    final int segment; // −1 for a clear
    private final Runnable effect;
    int result = OK;

    Pending(int request, boolean isRead, int segment, Runnable effect) {
      this.request = request;
      this.segment = segment;
      this.isRead = isRead;
      this.effect = effect;
    }
  }

  final List<Pending> pending = new ArrayList<>();
  private final Map<Long, Long> arenaContent;
  private final Map<Integer, Long> disk = new HashMap<>();
  private final Map<Integer, Table> tables = new HashMap<>();
  private final Map<Integer, Table> open = new HashMap<>();
  private final List<Clear> clears = new ArrayList<>();
  CacheCore core;
  long writes;

  SimulatedSsd(Map<Long, Long> arenaContent) {
    this.arenaContent = arenaContent;
  }

  private static int place(int segment, int page) {
    return segment << 16 | page;
  }

  private static long address(int arena, long offset) {
    return (long) arena << 40 | offset;
  }

  @Override
  public void read(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    add(
        request,
        true,
        segment,
        () -> {
          Long key = disk.get(place(segment, page));
          if (key == null || key.intValue() != crc) {
            completing.result = DAMAGED;
          } else {
            arenaContent.put(address(arena, offset), key);
          }
        });
  }

  private Pending completing;

  private void add(int request, boolean isRead, int segment, Runnable effect) {
    pending.add(new Pending(request, isRead, segment, effect));
  }

  @Override
  public void write(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    add(
        request,
        false,
        segment,
        () -> {
          Long key = arenaContent.get(address(arena, offset));
          if (key == null || key.intValue() != crc) {
            throw new AssertionError("memory of a write was reused: key=" + key);
          }
          disk.put(place(segment, page), key);
          writes++;
        });
  }

  @Override
  public void openSegment(int request, int segment, long generation) {
    open.put(segment, new Table(generation, new ArrayList<>(), 0));
    add(request, false, segment, () -> tables.remove(segment));
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
    MemorySegment copy = Arena.ofAuto().allocate(32, 8).copyFrom(hashes.asSlice(hash, 32));
    open.get(segment).entries.add(new Entry(copy, namespace, group, length, page, crc));
    return true;
  }

  @Override
  public void writeTable(int request, int segment, long lifetimeBytes, boolean close) {
    Table table = open.get(segment);
    Table copy = new Table(table.generation, List.copyOf(table.entries), lifetimeBytes);
    add(request, false, segment, () -> tables.put(segment, copy));
  }

  @Override
  public void writeClear(int request, MemorySegment namespace, long before, long oldest) {
    add(request, false, -1, () -> clears.add(new Clear(namespace, before)));
  }

  /** Completes one request with a result. */
  void complete(Pending request, int result, long nowNs) {
    pending.remove(request);
    request.result = result;
    if (result == OK) {
      completing = request;
      request.effect.run();
    }
    core.ssdCompleted(request.request, request.result, nowNs);
  }

  /** Completes all, also those that come meanwhile. */
  void completeAll(long nowNs) {
    for (int i = 0; i < 100_000; i++) {
      if (!pending.isEmpty()) {
        complete(pending.getFirst(), OK, nowNs);
      } else if (core.ssdStep(nowNs) == 0 && pending.isEmpty()) {
        return;
      }
    }
    throw new AssertionError("the tier does not come to rest");
  }

  /** The process ends: some of what was in progress still reaches the disk. */
  void kill(SplittableRandom random) {
    for (Pending each : List.copyOf(pending)) {
      if (!each.isRead && random.nextBoolean()) {
        completing = each;
        each.effect.run();
      }
    }
    pending.clear();
    open.clear();
  }

  /** Damages the bytes of some blocks. */
  int damage(SplittableRandom random, int oneIn) {
    int damaged = 0;
    for (Map.Entry<Integer, Long> block : disk.entrySet()) {
      if (random.nextInt(oneIn) == 0) {
        block.setValue(block.getValue() ^ 1L << 20);
        damaged++;
      }
    }
    return damaged;
  }

  /** Hands what the tables name to a new core. */
  long recover(SsdRecovery into) {
    long blocks = 0;
    into.nextGeneration(clears.stream().mapToLong(Clear::before).max().orElse(0));
    for (Map.Entry<Integer, Table> each : tables.entrySet()) {
      Table table = each.getValue();
      into.segment(each.getKey(), table.generation, table.lifetimeBytes);
      for (Entry entry : table.entries) {
        boolean cleared =
            clears.stream()
                .anyMatch(clear ->
                    table.generation < clear.before
                        && (clear.namespace == null
                            || clear.namespace.mismatch(entry.namespace) < 0));
        if (!cleared) {
          int space = into.space(entry.namespace, 0, entry.group, 32, entry.bytes);
          into.block(space, entry.hash, 0, entry.page, entry.crc);
          blocks++;
        }
      }
    }
    into.end();
    return blocks;
  }
}
