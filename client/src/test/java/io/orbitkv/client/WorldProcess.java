package io.orbitkv.client;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** One engine process of a {@link GrantWorld}: its pages, which outlive sessions and Managers. */
final class WorldProcess {
  static final int BLOCK_BYTES = 512;
  static final int PAGES = 128;

  final MemorySegment pages;
  final GroupMemory[] groups;
  final PageClaims[] claims;
  boolean dead;

  /** Other claims of the same pages, for a world in which claims die with their session. */
  final PageClaims[] otherClaims;

  WorldProcess(WorldMemory memory) {
    pages = memory.take((long) PAGES * BLOCK_BYTES);
    groups =
        new GroupMemory[] {GroupMemory.of(GroupSpec.contiguous(pages, BLOCK_BYTES, PAGES), true)};
    claims = new PageClaims[] {PageClaims.enter(groups[0].address())};
    otherClaims = new PageClaims[] {PageClaims.enter(groups[0].address() + 1)};
  }

  static int[] pageNumbers(int first, int count) {
    int[] numbers = new int[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = first + i;
    }
    return numbers;
  }

  /** What every byte of the block with this key is. */
  static byte pattern(int key) {
    return (byte) (key + 1);
  }

  MemorySegment page(int number) {
    return pages.asSlice((long) number * BLOCK_BYTES, BLOCK_BYTES);
  }

  void fill(Scenario.Op op, int firstPage) {
    for (int i = 0; i < op.blocks(); i++) {
      page(firstPage + i).fill(pattern(op.key() + i));
    }
  }

  /** True when the pages hold what the blocks of the operation do. */
  boolean holds(Scenario.Op op) {
    for (int i = 0; i < op.blocks(); i++) {
      MemorySegment page = page(op.page() + i);
      for (long at = 0; at < BLOCK_BYTES; at += 64) {
        if (page.get(ValueLayout.JAVA_BYTE, at) != pattern(op.key() + i)) {
          return false;
        }
      }
    }
    return true;
  }

  /** First byte of the operation's first page. */
  byte first(Scenario.Op op) {
    return page(op.page()).get(ValueLayout.JAVA_BYTE, 0);
  }

  /** The address may be another world's next. */
  void leave() {
    for (PageClaims[] each : new PageClaims[][] {claims, otherClaims}) {
      each[0].release(pageNumbers(0, PAGES));
      each[0].leave();
    }
  }
}
