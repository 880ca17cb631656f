package io.orbitkv.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReuseStatisticsTest {
  private static final int REUSED = 3;
  private static final int DEAD = 4;
  private static final int BLOCKS_TO_LEARN = 64 * ReuseState.CLASSES * 2;

  private final ReuseStatistics statistics = new ReuseStatistics();

  private void learn() {
    for (int i = 0; i < BLOCKS_TO_LEARN; i++) {
      statistics.step();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "0,0",
    "1,0",
    "2,2",
    "3,3",
    "4,4",
    "5,4",
    "6,5",
    "7,5",
    "8,6",
    "12,7",
    "2147483647,43"
  })
  void shouldKeepAgesInHalfOctaves(int age, int step) {
    assertThat(ReuseStatistics.step(age)).isEqualTo(step);
  }

  @Test
  void shouldValueClassThatIsReused() {
    for (int i = 0; i < 1000; i++) {
      statistics.aged(REUSED, 0, 100);
      statistics.reused(REUSED, 100);
      statistics.aged(DEAD, 0, 1000);
    }
    learn();

    int step = ReuseStatistics.step(90);
    assertThat(statistics.worth(REUSED, step)).isGreaterThan(20 * statistics.worth(DEAD, step));
  }

  /** Nothing is used again at once: what is about to be used is worth more than what is new. */
  @Test
  void shouldValueBlockMoreAsItsReuseComesNear() {
    for (int i = 0; i < 1000; i++) {
      statistics.aged(REUSED, 0, 100);
      statistics.reused(REUSED, 100);
    }
    learn();

    float fresh = statistics.worth(REUSED, ReuseStatistics.step(1));
    float near = statistics.worth(REUSED, ReuseStatistics.step(96));
    float late = statistics.worth(REUSED, ReuseStatistics.step(4096));
    assertThat(near).isGreaterThan(2 * fresh);
    assertThat(near).isGreaterThan(2 * late);
  }

  @Test
  void shouldPreferRecentAndOftenUsedWithoutData() {
    int once = ReuseState.classOf(ReuseState.fresh(8, 0));
    int twice = ReuseState.classOf(ReuseState.used(ReuseState.fresh(8, 0), 300));
    int tail = ReuseState.classOf(ReuseState.fresh(1, 0));
    int young = ReuseStatistics.step(10);
    int old = ReuseStatistics.step(10_000);

    assertThat(statistics.worth(once, young)).isGreaterThan(statistics.worth(once, old));
    assertThat(statistics.worth(twice, young)).isGreaterThan(statistics.worth(once, young));
    assertThat(statistics.worth(once, young)).isGreaterThan(statistics.worth(tail, young));
  }

  @Test
  void shouldGiveEachPastItsClass() {
    int state = ReuseState.fresh(1, 0);
    assertThat(ReuseState.classOf(state)).isZero();
    for (int use = 2; use < 100; use++) {
      state = ReuseState.used(state, use * use);
      assertThat(ReuseState.classOf(state)).isBetween(9, ReuseState.CLASSES - 1);
      assertThat(ReuseState.uses(state)).isEqualTo(Math.min(use, 63));
    }
    assertThat(state).isLessThanOrEqualTo(ReuseState.PAST);
  }

  @Test
  void shouldRememberEvictedBlocksByTheirKeys() {
    ReuseGhosts ghosts = new ReuseGhosts(bytes -> Arena.ofAuto().allocate(bytes, 64));
    int state = ReuseState.used(ReuseState.fresh(5, 0), 9);
    long key = 0x1234_5678_9abc_def0L;
    ghosts.remember(key, state | ReuseState.LISTED, 77);

    assertThat(ghosts.recall(key)).isEqualTo(77L << 32 | state);
    assertThat(ghosts.recall(key ^ 1L << 60)).isZero(); // same place, another block
    assertThat(ghosts.recall(key + 1)).isZero();
  }

  @Test
  void shouldTellWhatBecameOfEvictedBlocks() {
    ReuseSamples samples =
        new ReuseSamples(bytes -> Arena.ofAuto().allocate(bytes, 64), statistics);
    int state = ReuseState.fresh(8, 0);
    int reuseClass = ReuseState.classOf(state);
    float before = statistics.worth(reuseClass, ReuseStatistics.step(100));
    for (long key = 0; key < 500; key++) {
      samples.used(key, state, 0);
    }
    for (long key = 0; key < 500; key++) {
      samples.used(key, ReuseState.used(state, 120), 120);
    }
    learn();

    assertThat(statistics.worth(reuseClass, ReuseStatistics.step(100))).isGreaterThan(4 * before);
  }
}
