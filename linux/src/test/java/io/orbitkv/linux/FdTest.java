package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
class FdTest {
  @Test
  void shouldCloseOnceThoughNumberIsReused() {
    var first = Fd.own(WaitCalls.eventfd());
    int number = first.value();
    first.close();
    try (var second = Fd.own(WaitCalls.eventfd())) {
      assertThat(second.value()).isEqualTo(number);

      first.close();

      assertThat(FileCalls.fcntl(second.value(), FileCalls.F_GETFL, 0)).isNotNegative();
    }
  }

  @Test
  void shouldRefuseUseAfterClose() {
    var fd = Fd.own(WaitCalls.eventfd());
    fd.close();

    assertThatIllegalStateException().isThrownBy(fd::value);
    assertThatIllegalStateException().isThrownBy(fd::release);
  }

  @Test
  void shouldLeaveReleasedDescriptorOpen() {
    var fd = Fd.own(WaitCalls.eventfd());
    int number = fd.release();
    fd.close();

    assertThat(FileCalls.close(number)).isZero();
  }

  @Test
  void shouldRefuseNegativeNumber() {
    assertThatIllegalArgumentException().isThrownBy(() -> Fd.own(-1));
  }
}
