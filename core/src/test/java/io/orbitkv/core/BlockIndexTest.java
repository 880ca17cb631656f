package io.orbitkv.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Finding rows by hash, many at once and one by one, beside a map. */
class BlockIndexTest {
  private static final int ROWS = 20_000;
  private static final int MOST = 1500;

  private final Arena memory = Arena.ofAuto();
  private final MemorySegment hashes = memory.allocate(32L * MOST, 8);
  private final BlockIndex index = new BlockIndex(ROWS, bytes -> memory.allocate(bytes, 64));
  private final Map<Long, Integer> rowOf = new HashMap<>();

  @ParameterizedTest(name = "hashes of {0} bytes")
  @ValueSource(ints = {8, 20, 32})
  void findsWhatAMapFinds(int hashBytes) {
    SplittableRandom random = new SplittableRandom(7);
    for (long key = 0; key < ROWS; key++) {
      insert(key, hashBytes);
    }
    for (long key = 0; key < ROWS; key += 3) {
      remove(key);
    }
    for (int count : new int[] {1, 2, 127, 128, 129, 639, 640, 641, MOST}) {
      for (int round = 0; round < 20; round++) {
        long[] keys = random.longs(count, 0, ROWS).toArray();
        assertThat(find(keys, hashBytes, false)).containsExactly(wanted(keys));
      }
    }
  }

  @ParameterizedTest(name = "missing at {0}")
  @ValueSource(ints = {0, 1, 127, 128, 129, 640, 1499})
  void aPrefixEndsAtTheFirstHashThatIsMissing(int missing) {
    for (long key = 0; key < MOST; key++) {
      insert(key, 32);
    }
    remove(missing);
    long[] keys = new long[MOST];
    Arrays.setAll(keys, i -> i);
    int[] wanted = wanted(keys);
    assertThat(find(keys, 32, true)).containsExactly(Arrays.copyOf(wanted, missing));
    assertThat(find(keys, 32, false)).containsExactly(wanted);
  }

  @ParameterizedTest(name = "hashes of {0} bytes")
  @ValueSource(ints = {8, 32})
  void anEmptyIndexFindsNothing(int hashBytes) {
    long[] keys = new long[300];
    assertThat(find(keys, hashBytes, true)).isEmpty();
    assertThat(find(keys, hashBytes, false)).containsOnly(-1);
  }

  @ParameterizedTest(name = "space {0}")
  @ValueSource(ints = {0, 2})
  void aHashOfAnotherSpaceIsNotFound(int space) {
    insert(5, 32);
    write(0, 5, 32);
    assertThat(index.find(space, hashes, 0, 32)).isEqualTo(-1);
    assertThat(index.find(1, hashes, 0, 32)).isEqualTo(rowOf.get(5L));
  }

  @ParameterizedTest(name = "every {0}th row is no longer its key''s")
  @ValueSource(ints = {2, 3, 17, 40, 200})
  void followsOnlyRowsThatAreResident(int every) {
    for (long key = 0; key < MOST; key++) {
      insert(key, 32);
    }
    for (int key = every - 1; key < MOST; key += every) {
      int row = rowOf.remove((long) key);
      index.remove(row); // the hash stays in a row that is unsealed, free, or another space's
      if (key % 3 == 1) {
        index.freeRow(row);
      } else if (key % 3 == 2) {
        write(0, key, 32);
        index.fill(row, 2, hashes, 0, 32, key, 0, 0);
        index.insert(row);
      }
    }
    long[] keys = new long[MOST];
    Arrays.setAll(keys, i -> i);
    int[] wanted = wanted(keys);
    assertThat(find(keys, 32, false)).containsExactly(wanted);
    assertThat(find(keys, 32, true)).containsExactly(Arrays.copyOf(wanted, every - 1));
  }

  @ParameterizedTest(name = "{0} hashes")
  @ValueSource(ints = {1, 2, 65, 1000})
  void aRunEndsAtTheLastRow(int count) {
    for (long key = 0; key < count; key++) {
      insert(key, 32);
    }
    long[] keys = new long[count + 5];
    Arrays.setAll(keys, i -> i);
    assertThat(find(keys, 32, false)).containsExactly(wanted(keys));
    assertThat(find(keys, 32, true)).hasSize(count);
  }

  /** Hashes that differ in one word each, so that every word counts. */
  private void write(int place, long key, int hashBytes) {
    long at = (long) place * hashBytes;
    hashes.asSlice(at, hashBytes).fill((byte) 0);
    long word = hashBytes < 16 ? 0 : 8 * (key % (hashBytes / 8));
    hashes.set(ValueLayout.JAVA_LONG_UNALIGNED, at + word, key + 1);
  }

  private void insert(long key, int hashBytes) {
    write(0, key, hashBytes);
    int row = index.takeRow();
    index.fill(row, 1, hashes, 0, hashBytes, key, 0, 0);
    index.insert(row);
    rowOf.put(key, row);
  }

  private void remove(long key) {
    int row = rowOf.remove(key);
    index.remove(row);
    index.freeRow(row);
  }

  private int[] wanted(long[] keys) {
    return Arrays.stream(keys).mapToInt(key -> rowOf.getOrDefault(key, -1)).toArray();
  }

  private int[] find(long[] keys, int hashBytes, boolean prefix) {
    for (int i = 0; i < keys.length; i++) {
      write(i, keys[i], hashBytes);
    }
    int[] out = new int[keys.length];
    int found = index.find(1, hashes, 0, hashBytes, keys.length, out, prefix);
    return Arrays.copyOf(out, found);
  }
}
