package io.orbitkv.client;

import java.util.Arrays;

/**
 * Pages that an operation asked for, counted over its items in order. Immutable.
 *
 * @param groups memory of each group, by group id; null for a group that is not registered
 * @param groupIds group of each block
 * @param pages page of each block
 */
@SuppressWarnings("ArrayRecordComponent") // shared by the loops of one operation, never changed
record Target(GroupMemory[] groups, int[] groupIds, int[] pages) {
  /** Number of blocks. */
  int size() {
    return pages.length;
  }

  /** Collects blocks item by item. */
  static final class Builder {
    private final GroupMemory[] groups;
    private final int[] groupIds;
    private final int[] pages;
    private int size;

    Builder(GroupMemory[] groups, int size) {
      this.groups = groups;
      this.groupIds = new int[size];
      this.pages = new int[size];
    }

    void add(int group, int[] itemPages) {
      Arrays.fill(groupIds, size, size + itemPages.length, group);
      System.arraycopy(itemPages, 0, pages, size, itemPages.length);
      size += itemPages.length;
    }

    Target build() {
      return new Target(groups, groupIds, pages);
    }
  }
}
