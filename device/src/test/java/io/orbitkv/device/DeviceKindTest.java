package io.orbitkv.device;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class DeviceKindTest {
  @Test
  void shouldTrustExitOfHostProcessesOnly() {
    assertThat(DeviceKind.HOST.exitProvesTermination()).isTrue();
    assertThat(DeviceKind.CUDA.exitProvesTermination()).isFalse();
  }
}
