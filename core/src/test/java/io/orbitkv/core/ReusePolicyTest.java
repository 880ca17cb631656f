package io.orbitkv.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.Memory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ReusePolicyTest {
  private static final int ROWS = 4096;
  private static final int HASH_BYTES = 32;

  private final MetadataMemory memory = bytes -> Arena.ofAuto().allocate(bytes, 64);
  private final BlockIndex index = new BlockIndex(ROWS, memory);
  private final ReusePolicy policy = new ReusePolicy(ROWS, memory, index);
  private final MemorySegment hash = Arena.ofAuto().allocate(HASH_BYTES, 8);
  private final Map<Integer, Integer> parents = new HashMap<>();
  private long allocations;

  private int add(long key, int parent, int left) {
    int row = index.takeRow();
    Memory.putLong(hash, 0, key * 0x9e37_79b9_7f4a_7c15L);
    Memory.putLong(hash, 8, key);
    index.fill(row, 0, hash, 0, HASH_BYTES, ++allocations, 0, row);
    index.insert(row);
    policy.added(row, 0, parent, left);
    parents.put(row, parent);
    return row;
  }

  private void evict(int row) {
    policy.removed(row, 0);
    index.remove(row);
    index.freeRow(row);
    parents.remove(row);
  }

  private List<Integer> addChain(long firstKey, int length) {
    List<Integer> rows = new ArrayList<>();
    for (int i = 0; i < length; i++) {
      rows.add(add(firstKey + i, i == 0 ? -1 : rows.getLast(), length - i));
    }
    return rows;
  }

  private void touchChain(List<Integer> rows) {
    rows.reversed().forEach(row -> policy.touched(row, 0));
  }

  @Test
  void shouldEvictChainFromTailToHead() {
    List<Integer> rows = addChain(0, 10);
    policy.tick();

    for (int row : rows.reversed()) {
      assertThat(policy.victim(0)).isEqualTo(row);
      evict(row);
    }
    assertThat(policy.victim(0)).isEqualTo(-1);
  }

  @Test
  void shouldKeepSharedHeadUntilEachTailIsGone() {
    List<Integer> rows = addChain(0, 3);
    policy.tick();
    int left = add(100, rows.getLast(), 1);
    int right = add(200, rows.getLast(), 1);
    policy.tick();

    List<Integer> order = new ArrayList<>();
    for (int victim = policy.victim(0); victim >= 0; victim = policy.victim(0)) {
      order.add(victim);
      evict(victim);
    }

    assertThat(order.subList(0, 2)).containsExactlyInAnyOrder(left, right);
    assertThat(order.subList(2, 5)).isEqualTo(rows.reversed());
  }

  @Test
  void shouldPassPinnedRows() {
    List<Integer> pinned = addChain(0, 2);
    List<Integer> free = addChain(100, 2);
    index.addPins(pinned.getLast(), 1);
    policy.tick();

    assertThat(policy.victim(0)).isEqualTo(free.getLast());
    index.addPins(free.getLast(), 1);
    assertThat(policy.victim(0)).isEqualTo(-1);
    index.addPins(pinned.getLast(), -1);
    assertThat(policy.victim(0)).isEqualTo(pinned.getLast());
  }

  @Test
  void shouldEvictNewestOnlyWhenNothingElseIsThere() {
    int old = add(1, -1, 2);
    policy.tick();
    int young = add(2, -1, 2);

    assertThat(policy.victim(0)).isEqualTo(old);
    evict(old);
    assertThat(policy.victim(0)).isEqualTo(young);
  }

  @Test
  void shouldNotTakeRowForParentOnceItsNumberIsReused() {
    List<Integer> rows = addChain(0, 2);
    evict(rows.getFirst()); // out of order, as when a slab is emptied
    int other = add(500, -1, 1);

    assertThat(other).isEqualTo(rows.getFirst());
    assertThat(policy.parent(rows.getLast())).isEqualTo(-1);
    policy.tick();
    evict(rows.getLast());
    assertThat(policy.victim(0)).isEqualTo(other);
  }

  @Test
  void shouldEvictWhatTheTierBelowHoldsBeforeItsEquals() {
    add(1, -1, 2);
    int below = add(2, -1, 2);
    add(3, -1, 2);
    policy.prefer(row -> row == below);
    policy.tick();

    assertThat(policy.victim(0)).isEqualTo(below);
    index.addPins(below, 1);
    assertThat(policy.victim(0)).isNotEqualTo(below);
  }

  @Test
  void shouldEvictChainFromTailToHeadWhateverTheTierBelowHolds() {
    List<Integer> rows = addChain(0, 10);
    policy.prefer(row -> row == rows.getFirst() || row == rows.get(4));
    policy.tick();

    for (int row : rows.reversed()) {
      assertThat(policy.victim(0)).isEqualTo(row);
      evict(row);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void shouldKeepWhatCameLastUntilASixteenthHasComeAfterIt(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    int capacity = 640;
    LinkedHashSet<Integer> resident = new LinkedHashSet<>();
    Map<Integer, Integer> arrivals = new HashMap<>();
    int came = 0;
    for (int key = 0; key < 20_000; ) {
      policy.tick();
      for (int i = random.nextInt(4); i > 0; i--) {
        touchRandom(random, resident);
      }
      int length = 1 + random.nextInt(random.nextInt(8) == 0 ? 60 : 6);
      while (resident.size() + length > capacity) {
        int victim = policy.victim(0);
        assertThat(came - arrivals.get(victim))
            .as("seed=%s", seed)
            .isGreaterThanOrEqualTo(resident.size() / 16);
        evict(victim);
        resident.remove(victim);
      }
      for (int row : addChain(key, length)) {
        resident.add(row);
        arrivals.put(row, came++);
      }
      key += length;
    }
  }

  /** An LRU of this size would find none: between two uses of a chain more comes than fits. */
  @Test
  void shouldKeepReusedChainsThroughScan() {
    int capacity = 400;
    int chains = 20;
    int length = 10;
    Map<Integer, List<Integer>> hot = new HashMap<>();
    long scanKey = 1_000_000;
    int hits = 0;
    for (int round = 0; round < 3000; round++) {
      List<Integer> used = hot.getOrDefault(round % chains, List.of());
      boolean hit = !used.isEmpty() && parents.keySet().containsAll(used);
      hits += hit && round >= 2000 ? 1 : 0;
      policy.tick();
      if (hit) {
        touchChain(used);
      }
      while (index.resident() + 30 + length > capacity) {
        int victim = policy.victim(0);
        hot.values().removeIf(rows -> rows.contains(victim));
        evict(victim);
      }
      if (!hit) {
        hot.put(round % chains, addChain(1000L * (round % chains), length));
      }
      addChain(scanKey, 30);
      scanKey += 30;
    }

    assertThat(hits).isGreaterThan(900);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void shouldOnlyOfferRowsThatNothingContinues(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    LinkedHashSet<Integer> resident = new LinkedHashSet<>();
    if (seed % 2 == 0) {
      policy.prefer(row -> index.key(row) % 3 == 0);
    }
    long key = 0;
    for (int step = 0; step < 20_000; step++) {
      switch (random.nextInt(4)) {
        case 0 -> policy.tick();
        case 1 -> touchRandom(random, resident);
        default -> {
          int parent = resident.isEmpty() || random.nextInt(4) == 0 ? -1 : pick(random, resident);
          for (int left = 1 + random.nextInt(6); left > 0; left--) {
            parent =
                add(random.nextInt(8) == 0 ? random.nextLong(key + 1) << 32 : key++, parent, left);
            resident.add(parent);
          }
        }
      }
      while (resident.size() > 500) {
        int victim = policy.victim(0);
        assertThat(parents.values()).as("seed=%s step=%s", seed, step).doesNotContain(victim);
        evict(victim);
        resident.remove(victim);
      }
    }
    int left = resident.size();
    for (int victim = policy.victim(0); victim >= 0; victim = policy.victim(0)) {
      assertThat(parents.values()).doesNotContain(victim);
      evict(victim);
      left--;
    }
    assertThat(left).as("rows that were never offered, seed=%s", seed).isZero();
  }

  private void touchRandom(SplittableRandom random, Set<Integer> resident) {
    int row = resident.isEmpty() ? -1 : pick(random, resident);
    for (; row >= 0; row = policy.parent(row)) {
      policy.touched(row, 0);
    }
  }

  private static int pick(SplittableRandom random, Set<Integer> rows) {
    return rows.stream().skip(random.nextInt(rows.size())).findFirst().orElseThrow();
  }

  @Test
  void shouldCostNoMoreThan96BytesARowWithItsShareOfTheTables() {
    int bucketsAndSlab = 8 + Integer.BYTES;

    assertThat(BlockIndex.ROW_BYTES + ReusePolicy.ROW_BYTES + bucketsAndSlab)
        .isLessThanOrEqualTo(96);
  }
}
