package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.lang.foreign.Arena;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
@Timeout(60)
class EventFdTest {
  private static final int LONG_MS = 30_000;

  @Test
  void shouldDrainAllSignalsAtOnce() {
    try (var event = EventFd.create()) {
      assertThat(event.drain()).isFalse();
      event.signal();
      event.signal();

      assertThat(event.drain()).isTrue();
      assertThat(event.drain()).isFalse();
    }
  }

  @Test
  void shouldWakeWaiter() throws Exception {
    try (var event = EventFd.create()) {
      var waiter = CompletableFuture.supplyAsync(() -> event.await(LONG_MS));

      event.signal();

      assertThat(waiter.get()).isTrue();
      assertThat(event.await(1)).isFalse();
      assertThatIllegalArgumentException().isThrownBy(() -> event.await(-1));
    }
  }

  @Test
  void shouldNotBlockWhenFull() {
    try (var event = EventFd.create();
        var arena = Arena.ofConfined()) {
      var most = arena.allocateFrom(JAVA_LONG, -2L);
      assertThat(FileCalls.write(event.fd(), most, 8)).isEqualTo(8);

      event.signal();

      assertThat(event.drain()).isTrue();
    }
  }

  @Test
  void shouldMakeAdoptedNonBlocking() {
    var fd = Fd.own(WaitCalls.eventfd());
    assertThat(FileCalls.fcntl(fd.value(), FileCalls.F_SETFL, 0)).isZero();
    try (var event = EventFd.adopt(fd)) {
      assertThat(event.drain()).isFalse();
    }
  }

  @Test
  void shouldCloseWhatCannotBeAdopted() {
    var fd = Fd.own(1_000_000);

    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> EventFd.adopt(fd))
        .returns(Errno.EBADF, LinuxException::errno);
    assertThatIllegalStateException().isThrownBy(fd::value);
  }

  @Test
  void shouldIgnoreSignalButRefuseDrainAfterClose() {
    var event = EventFd.create();
    event.close();
    event.close();

    event.signal();

    assertThatIllegalStateException().isThrownBy(event::drain);
    assertThatIllegalStateException().isThrownBy(() -> event.await(0));
    assertThatIllegalStateException().isThrownBy(event::fd);
  }

  @Test
  void shouldAllocateNothing() {
    try (var event = EventFd.create()) {
      Runnable task =
          () -> {
            event.signal();
            event.await(0);
            event.signal();
            event.drain();
          };

      assertThat(Allocations.vanish(task)).isTrue();
    }
  }
}
