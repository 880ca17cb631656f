package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
class EpollTest {
  @Test
  void shouldReportTokensOfReadyDescriptors() {
    var events = Stream.generate(EventFd::create).limit(5).toList();
    try (var epoll = Epoll.create()) {
      for (int i = 0; i < events.size(); i++) {
        epoll.add(events.get(i).fd(), Long.MAX_VALUE - i);
      }
      assertThat(epoll.await(0)).isZero();
      events.get(1).signal();
      events.get(4).signal();

      assertThat(epoll.await(30_000)).isEqualTo(2);
      assertThat(IntStream.range(0, 2).mapToLong(epoll::token))
          .containsExactlyInAnyOrder(Long.MAX_VALUE - 1, Long.MAX_VALUE - 4);
      assertThat(epoll.events(0)).isEqualTo(Poll.IN);
      assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> epoll.token(2));
    } finally {
      events.forEach(EventFd::close);
    }
  }

  @Test
  void shouldReportUntilDrained() {
    try (var epoll = Epoll.create();
        var event = EventFd.create()) {
      epoll.add(event.fd(), -1);
      event.signal();

      assertThat(epoll.await(0)).isEqualTo(1);
      assertThat(epoll.await(0)).isEqualTo(1);
      assertThat(epoll.token(0)).isEqualTo(-1);
      event.drain();
      assertThat(epoll.await(0)).isZero();
    }
  }

  @Test
  void shouldReportEachEdgeOnceUndrained() {
    try (var epoll = Epoll.create();
        var event = EventFd.create()) {
      epoll.addEdge(event.fd(), 7);
      for (int i = 0; i < 3; i++) {
        event.signal();

        assertThat(epoll.await(0)).isEqualTo(1);
        assertThat(epoll.token(0)).isEqualTo(7);
        assertThat(epoll.await(0)).isZero();
      }
    }
  }

  @Test
  void shouldForgetRemoved() {
    try (var epoll = Epoll.create();
        var event = EventFd.create()) {
      epoll.add(event.fd(), 1);
      event.signal();
      epoll.remove(event.fd());

      assertThat(epoll.await(0)).isZero();
      assertThatExceptionOfType(LinuxException.class)
          .isThrownBy(() -> epoll.remove(event.fd()))
          .returns(Errno.ENOENT, LinuxException::errno);
    }
  }

  @Test
  void shouldRefuseSecondWatchAndBoundlessWait() {
    try (var epoll = Epoll.create();
        var event = EventFd.create()) {
      epoll.add(event.fd(), 1);

      assertThatExceptionOfType(LinuxException.class)
          .isThrownBy(() -> epoll.add(event.fd(), 2))
          .returns(Errno.EEXIST, LinuxException::errno);
      assertThatIllegalArgumentException().isThrownBy(() -> epoll.await(-1));
    }
  }

  @Test
  void shouldRefuseUseAfterClose() {
    var epoll = Epoll.create();
    epoll.close();
    epoll.close();

    assertThatIllegalStateException().isThrownBy(() -> epoll.await(0));
  }

  @Test
  void shouldAllocateNothing() {
    try (var epoll = Epoll.create();
        var event = EventFd.create()) {
      epoll.add(event.fd(), 1);
      event.signal();

      assertThat(Allocations.vanish(() -> assertReady(epoll))).isTrue();
    }
  }

  private static void assertReady(Epoll epoll) {
    if (epoll.await(0) != 1 || epoll.token(0) != 1) {
      throw new AssertionError("not ready");
    }
  }
}
