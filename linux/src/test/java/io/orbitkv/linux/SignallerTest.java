package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(LeakCheck.class)
@Timeout(60)
class SignallerTest {
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void shouldWake(boolean asynchronous) {
    try (var signaller = Signaller.create(asynchronous);
        var event = EventFd.create()) {
      for (int i = 0; i < 1_000; i++) { // more than completions have room
        signaller.signal(event);
      }

      assertThat(event.await(30_000)).isTrue();
      assertThat(event.drain()).isFalse();
      assertThat(signaller.neverBlocks()).isEqualTo(asynchronous);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void shouldNotBlockOnFullEventFdThatBlocks(boolean asynchronous) {
    try (var signaller = Signaller.create(asynchronous);
        var event = EventFd.create();
        var arena = Arena.ofConfined()) {
      assertThat(FileCalls.fcntl(event.fd(), FileCalls.F_SETFL, 0)).isZero();
      var most = arena.allocateFrom(JAVA_LONG, -2L);
      assertThat(FileCalls.write(event.fd(), most, 8)).isEqualTo(8);

      for (int i = 0; i < 1_000; i++) {
        signaller.signal(event);
      }

      assertThat(event.await(0)).isTrue();
      signaller.signal(event);
      assertThat(event.await(0)).isTrue();
    }
  }

  @Test
  void shouldIgnoreClosedEventFdButRefuseAfterItsOwnClose() {
    var signaller = Signaller.create();
    try (var event = EventFd.create()) {
      var closed = EventFd.create();
      closed.close();
      signaller.signal(closed);

      signaller.close();
      signaller.close();

      assertThatIllegalStateException().isThrownBy(() -> signaller.signal(event));
    }
  }

  @Test
  void shouldAllocateNoMoreThanTheViewsOfItsCalls() {
    try (var signaller = Signaller.create();
        var event =
            EventFd.create()) { // nothing where the compiler inlines the calls, which it decides by
      // the load
      assertThat(Allocations.fallBelow(() -> signaller.signal(event), 256)).isTrue();
    }
  }
}
