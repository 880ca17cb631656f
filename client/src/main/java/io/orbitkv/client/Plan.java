package io.orbitkv.client;

import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;

/**
 * Plan of one part, copied out of the plan bank once and checked: nothing of it is read from shared
 * memory again. Belongs to the driver of its operation.
 */
final class Plan {
  /** Blocks of the part. */
  final int size;

  /** Parts of the operation. */
  final int parts;

  /** Offset of the first entry in the grant region. */
  final long bankAt;

  /** For each entry: index of the block in the {@link Target}. */
  final int[] block;

  final int[] arena;
  final long[] offset;
  final int[] crc;

  private Plan(int size, int parts, long bankAt) {
    this.size = size;
    this.parts = parts;
    this.bankAt = bankAt;
    this.block = new int[size];
    this.arena = new int[size];
    this.offset = new long[size];
    this.crc = new int[size];
  }

  /**
   * Copies and checks the plan of an Active record.
   *
   * @param part index of the part
   * @param first first block of the target that earlier parts have not covered
   * @param everyBlock whether no block of the target may be left out
   * @throws ProtocolException naming the entry, its value and the rule
   */
  static Plan read(
      GrantTable table,
      int slot,
      Target target,
      MemorySegment[] arenas,
      int part,
      int first,
      boolean everyBlock) {
    int planOffset = table.planOffset(slot);
    int entries = table.planEntries(slot);
    int parts = table.parts(slot);
    int left = target.size() - first;
    require(parts > part && parts <= GrantWord.MAX_PART + 1, "parts", parts);
    require(entries >= 0 && entries <= left, "entries", entries);
    require(
        planOffset >= 0
            && planOffset % Long.BYTES == 0
            && planOffset <= GrantTable.BANK_BYTES - (long) entries * PlanEntry.BYTES,
        "offset",
        planOffset);
    require(!everyBlock || part < parts - 1 || entries == left, "entries", entries);
    Plan plan = new Plan(entries, parts, GrantTable.bankAt(planOffset));
    int next = first;
    for (int i = 0; i < entries; i++) {
      next = plan.readEntry(i, table.memory(), target, arenas, next, everyBlock) + 1;
    }
    return plan;
  }

  private int readEntry(
      int i,
      MemorySegment bank,
      Target target,
      MemorySegment[] arenas,
      int next,
      boolean everyBlock) {
    long at = entryAt(i);
    int group = PlanEntry.group(bank, at);
    int page = PlanEntry.page(bank, at);
    int arenaIndex = PlanEntry.arena(bank, at);
    long arenaOffset = PlanEntry.offset(bank, at);
    int length = PlanEntry.length(bank, at);
    int asked = next;
    while (!everyBlock && asked < target.size() && !isBlock(target, asked, group, page)) {
      asked++; // a publish leaves out what is held already
    }
    require(
        asked < target.size() && isBlock(target, asked, group, page), "page of entry " + i, page);
    require(length == target.groups()[group].blockBytes, "length of entry " + i, length);
    require(arenaIndex < arenas.length, "arena of entry " + i, arenaIndex);
    require(
        arenaOffset >= 0 && arenaOffset <= arenas[arenaIndex].byteSize() - length,
        "offset of entry " + i,
        arenaOffset);
    block[i] = asked;
    arena[i] = arenaIndex;
    offset[i] = arenaOffset;
    crc[i] = PlanEntry.crc(bank, at);
    return asked;
  }

  private static boolean isBlock(Target target, int index, int group, int page) {
    return target.groupIds()[index] == group && target.pages()[index] == page;
  }

  /** Offset of an entry in the grant region. */
  long entryAt(int index) {
    return bankAt + (long) index * PlanEntry.BYTES;
  }

  private static void require(boolean condition, String what, long value) {
    if (!condition) {
      throw new ProtocolException(
          Status.COPY_FAILED, "plan: " + what + "=" + value + " not asked for");
    }
  }
}
