package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class OverdueWarningsTest {
  private static final long MINUTE_NS = 60_000_000_000L;

  private final OverdueWarnings warnings = new OverdueWarnings();

  private static PublishActivity overdue(int count) {
    return new PublishActivity(count + 1, 0, 1, count, true);
  }

  @Test
  void shouldWarnOnceAMinuteWhilePublishesAreOverdue() {
    assertThat(warnings.isDue(overdue(0), 0)).isFalse();
    assertThat(warnings.isDue(overdue(1), 5)).isTrue();
    assertThat(warnings.isDue(overdue(2), MINUTE_NS + 4)).isFalse();
    assertThat(warnings.isDue(overdue(2), MINUTE_NS + 5)).isTrue();
  }

  @Test
  void shouldNotWarnMoreOftenWhenPublishesComeAndGo() {
    assertThat(warnings.isDue(overdue(1), 0)).isTrue();
    assertThat(warnings.isDue(overdue(0), 1)).isFalse();
    assertThat(warnings.isDue(overdue(1), 2)).isFalse();
  }
}
