package io.orbitkv.bench.planner;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.core.SsdConfig;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Each policy on a sequence that was worked out by hand from its paper. */
class PoliciesTest {
  private static final int IDS = 10;

  private static int[] hits(PrefixCache cache, int[]... requests) {
    try (cache) {
      return play(cache, requests);
    }
  }

  private static int[] play(PrefixCache cache, int[]... requests) {
    return Arrays.stream(requests).mapToInt(cache::request).toArray();
  }

  private static int[] r(int... ids) {
    return ids;
  }

  @Test
  void shouldEvictLeastRecentlyUsedWithTailsFirst() {
    assertThat(hits(new Lru(IDS, 2), r(0, 1), r(0, 2), r(0, 1), r(2), r(0, 1)))
        .containsExactly(0, 1, 1, 0, 1);
  }

  @Test
  void shouldCountNoBlockBehindMissingOne() {
    assertThat(hits(new Lru(IDS, 4), r(1, 2), r(0, 1, 2), r(0, 1, 2))).containsExactly(0, 0, 3);
  }

  /** The second use of 0 finds it in the ghost queue, so it enters the main queue and stays. */
  @Test
  void shouldFollowS3Fifo() {
    assertThat(hits(new S3Fifo(IDS, 2), r(0), r(1), r(2), r(0), r(3), r(4), r(5), r(0), r(3), r(1)))
        .containsExactly(0, 0, 0, 0, 0, 0, 0, 1, 0, 0);
  }

  /** Block 2 is refused first, then comes often enough to replace 1. */
  @Test
  void shouldFollowWTinyLfu() {
    assertThat(hits(new WTinyLfu(IDS, 3), r(0), r(1), r(2), r(3), r(0), r(2), r(2), r(4), r(1)))
        .containsExactly(0, 0, 0, 0, 1, 0, 1, 0, 0);
  }

  /** A hit among the ghosts of T1 makes T1's share larger, so that 0 leaves T2. */
  @Test
  void shouldFollowArc() {
    assertThat(hits(new Arc(IDS, 2), r(0), r(0), r(1), r(2), r(0), r(3), r(0), r(2), r(3), r(0)))
        .containsExactly(0, 1, 0, 0, 1, 0, 1, 0, 1, 0);
  }

  @Test
  void shouldKeepWhatIsUsedNext() {
    List<int[]> requests = List.of(r(0, 1), r(2), r(0, 1), r(2));

    assertThat(hits(new BeladyPrefix(IDS, 2, requests), requests.toArray(int[][]::new)))
        .containsExactly(0, 0, 2, 0);
  }

  @Test
  void shouldEvictDeepestOfThoseUsedAtTheSameTime() {
    List<int[]> requests = List.of(r(0, 1, 2), r(0, 1, 2));

    assertThat(hits(new BeladyPrefix(IDS, 2, requests), requests.toArray(int[][]::new)))
        .containsExactly(0, 2);
  }

  @Test
  void shouldFindOnSsdWhatLeftDram() {
    try (CoreCache cache = new CoreCache(8, 64, SsdConfig.WritePolicy.ALL)) {
      assertThat(play(cache, r(0, 1), r(10, 11, 12, 13, 14, 15, 16, 17), r(0, 1)))
          .containsExactly(0, 0, 2);
      assertThat(cache.writtenBlocks()).isEqualTo(10);
      assertThat(cache.loadedBlocks()).isEqualTo(2);
    }
  }

  @Test
  void shouldWriteOnlyWhatWasHit() {
    try (CoreCache cache = new CoreCache(8, 64, SsdConfig.WritePolicy.REUSE)) {
      int[] others = r(10, 11, 12, 13, 14, 15, 16, 17);
      assertThat(play(cache, r(0, 1), r(2), r(0, 1), others, r(0, 1), r(2)))
          .containsExactly(0, 0, 2, 0, 2, 0);
      assertThat(cache.writtenBlocks()).isEqualTo(2);
    }
  }

  /** What an engine has just saved it may restore at once, whatever the cache has learned. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void shouldHitASixteenthOfThePoolRightAfterItWasStored(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    int pool = 64 << random.nextInt(6);
    List<int[]> often = RandomRequests.chains(0, 200, Math.max(1, pool / 50));
    double[] shares = RandomRequests.zipf(often.size(), 0.8);
    try (CoreCache cache = new CoreCache(pool)) {
      int next = 1 << 24;
      for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 3; i++) {
          cache.request(often.get(RandomRequests.pick(shares, random)));
        }
        List<int[]> saved = new ArrayList<>();
        for (int left = pool / 16; left > 0; ) {
          int length = 1 + random.nextInt(Math.min(left, 1 + pool / 64));
          saved.add(IntStream.range(next, next + length).toArray());
          next += length;
          left -= length;
        }
        saved.forEach(cache::request);
        for (int[] ids : saved) {
          assertThat(cache.request(ids)).as("seed=%s round=%s", seed, round).isEqualTo(ids.length);
        }
      }
    }
  }

  @Test
  void shouldRunTheCoreWithItsExactNumberOfBlocks() {
    assertThat(hits(new CoreCache(3), r(0, 1, 2), r(0, 1, 2), r(3), r(0, 1, 2), r(0, 1, 2, 4)))
        .containsExactly(0, 3, 0, 2, 3);
  }
}
