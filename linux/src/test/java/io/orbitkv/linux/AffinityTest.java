package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class AffinityTest {
  private final int[] before = Affinity.allowedCpus();

  @AfterEach
  void restore() {
    Affinity.restore(before);
  }

  @Test
  void shouldPinAndRestore() {
    int last = before[before.length - 1];

    Affinity.pinCurrentThread(last);

    assertThat(Affinity.allowedCpus()).containsExactly(last);
    Affinity.restore(before);
    assertThat(Affinity.allowedCpus()).isEqualTo(before);
  }

  @Test
  void shouldRefuseAbsentProcessor() {
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> Affinity.pinCurrentThread(8191))
        .withMessageContaining("8191")
        .returns(Errno.EINVAL, LinuxException::errno);
    assertThatIllegalArgumentException().isThrownBy(() -> Affinity.pinCurrentThread(8192));
    assertThatIllegalArgumentException().isThrownBy(() -> Affinity.pinCurrentThread(-1));
  }
}
