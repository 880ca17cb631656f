package io.orbitkv.bench.planner;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Each policy on a sequence that was worked out by hand from its paper. */
class PoliciesTest {
  private static final int IDS = 10;

  private static int[] hits(PrefixCache cache, int[]... requests) {
    try (cache) {
      return Arrays.stream(requests).mapToInt(cache::request).toArray();
    }
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
    SsdModel cache = new SsdModel(new Lru(IDS, 1), IDS, 2, SsdModel.WritePolicy.ALL);

    assertThat(hits(cache, r(0), r(1), r(0), r(2), r(0))).containsExactly(0, 0, 1, 0, 0);
    assertThat(cache.writtenBlocks()).isEqualTo(4);
  }

  @Test
  void shouldWriteOnlyWhatWasHit() {
    SsdModel cache = new SsdModel(new Lru(IDS, 1), IDS, 2, SsdModel.WritePolicy.REUSE);

    assertThat(hits(cache, r(0), r(0), r(1), r(0), r(1))).containsExactly(0, 1, 0, 1, 0);
    assertThat(cache.writtenBlocks()).isEqualTo(1);
  }

  @Test
  void shouldRunTheCoreWithItsExactNumberOfBlocks() {
    assertThat(hits(new CoreCache(3), r(0, 1, 2), r(0, 1, 2), r(3), r(0, 1, 2), r(0, 1, 2, 4)))
        .containsExactly(0, 3, 0, 2, 3);
  }
}
