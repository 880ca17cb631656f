package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.lang.foreign.Arena;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
class GuardedFdTest {
  @Test
  void shouldCloseWhenLastUserLeaves() {
    var fd = Fd.own(WaitCalls.eventfd());
    var guarded = new GuardedFd(fd);
    int raw = guarded.enter();
    assertThat(guarded.tryEnter()).isTrue();

    guarded.close();
    guarded.close();
    guarded.leave();

    assertThat(fd.value()).isEqualTo(raw);
    assertThat(guarded.tryEnter()).isFalse();
    assertThatIllegalStateException().isThrownBy(guarded::enter);
    assertThatIllegalStateException().isThrownBy(guarded::value);
    guarded.leave();
    assertThatIllegalStateException().isThrownBy(fd::value);
  }

  @Test
  @SuppressWarnings("MustBeClosedChecker") // the descriptor closes it
  void shouldFreeItsMemoryWhenLastUserLeaves() {
    var memory = Arena.ofShared();
    var guarded = new GuardedFd(Fd.own(WaitCalls.eventfd()), memory);
    guarded.enter();

    guarded.close();

    assertThat(memory.scope().isAlive()).isTrue();
    guarded.leave();
    assertThat(memory.scope().isAlive()).isFalse();
  }

  @Test
  @Timeout(60)
  void shouldNeverCloseUnderUser() throws Exception {
    try (var threads = Executors.newFixedThreadPool(2)) {
      for (int i = 0; i < 2_000; i++) {
        var guarded = new GuardedFd(Fd.own(WaitCalls.eventfd()));
        Callable<Boolean> user =
            () -> {
              boolean open = true;
              while (guarded.tryEnter()) {
                open &= FileCalls.fcntl(guarded.raw(), FileCalls.F_GETFL, 0) >= 0;
                guarded.leave();
              }
              return open;
            };
        var first = threads.submit(user);
        var second = threads.submit(user);

        guarded.close();

        assertThat(first.get()).isTrue();
        assertThat(second.get()).isTrue();
      }
    }
  }
}
