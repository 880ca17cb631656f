package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
class PollTest {
  @Test
  void shouldSetBitOfEachReadyDescriptor() {
    try (var first = EventFd.create();
        var second = EventFd.create();
        var third = EventFd.create()) {
      int[] fds = {first.fd(), second.fd(), third.fd()};
      assertThat(Poll.poll(fds, Poll.IN, 1)).isZero();
      first.signal();
      third.signal();

      assertThat(Poll.poll(fds, Poll.IN, 30_000)).isEqualTo(0b101);
      assertThat(Poll.poll(fds, Poll.OUT, 30_000)).isEqualTo(0b111);
      assertThat(Poll.poll(new int[] {-1, fds[2]}, Poll.IN, 0)).isEqualTo(0b10);
    }
  }

  @Test
  void shouldTellThatDescriptorIsNotOpen() {
    assertThat(Poll.poll(1_000_000, Poll.IN, 0)).isEqualTo(Poll.INVALID);
  }

  @Test
  void shouldRefuseWhatItCannotDo() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Poll.poll(new int[33], Poll.IN, 0))
        .withMessageContaining("count=33, max=32");
    assertThatIllegalArgumentException().isThrownBy(() -> Poll.poll(0, Poll.IN, -1));
  }
}
