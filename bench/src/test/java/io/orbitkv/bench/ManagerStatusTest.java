package io.orbitkv.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.client.OrbitKvException;
import org.junit.jupiter.api.Test;

class ManagerStatusTest {
  private static final String SETTLED =
      "{\"pinned_blocks\":0,\"leases\":0,\"lease_bytes\":0,\"grants_active\":0,"
          + "\"queries_pending\":0,\"retained_operations\":0,\"sessions_retained\":0,"
          + "\"pool_used_bytes\":8192,\"resident_bytes\":8192}";

  @Test
  void shouldFindNoLeakWhenAllIsGivenBack() {
    assertThat(ManagerStatus.parse(SETTLED).leaks()).isEmpty();
  }

  @Test
  void shouldNameWhatWasNotGivenBack() {
    String status =
        SETTLED
            .replace("\"leases\":0", "\"leases\":2")
            .replace("\"resident_bytes\":8192", "\"resident_bytes\":4096");

    assertThat(ManagerStatus.parse(status).leaks())
        .containsExactly("leases=2", "pool_used_bytes=8192, resident_bytes=4096");
  }

  @Test
  void shouldNameMissingNumber() {
    assertThatThrownBy(() -> ManagerStatus.parse("{}").number("leases"))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("\"leases\"");
  }
}
