package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
@Timeout(60)
class PidFdTest {
  private static final int LONG_MS = 30_000;
  private static final int SIGKILL = 9;

  @Test
  void shouldTellThatChildExited() throws Exception {
    var child = new ProcessBuilder("sleep", "60").start();
    try (var pidFd = PidFd.open((int) child.pid())) {
      assertThat(pidFd.hasExited()).isFalse();
      assertThat(pidFd.awaitExit(1)).isFalse();
      pidFd.kill(0);

      pidFd.kill(SIGKILL);

      assertThat(pidFd.awaitExit(LONG_MS)).isTrue();
      assertThat(pidFd.hasExited()).isTrue();
      assertThat(child.waitFor()).isEqualTo(128 + SIGKILL);
      assertThatExceptionOfType(LinuxException.class)
          .isThrownBy(() -> pidFd.kill(0))
          .returns(Errno.ESRCH, LinuxException::errno);
    } finally {
      child.destroyForcibly();
    }
  }

  @Test
  void shouldRefusePidOfNobody() throws Exception {
    var child = new ProcessBuilder("true").start();
    child.waitFor();

    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> PidFd.open((int) child.pid()))
        .withMessageContaining("pid=" + child.pid())
        .returns(Errno.ESRCH, LinuxException::errno);
  }

  @Test
  void shouldRefuseUseAfterClose() {
    var pidFd = PidFd.open(Ids.pid());
    pidFd.close();
    pidFd.close();

    assertThatIllegalStateException().isThrownBy(pidFd::hasExited);
    assertThatIllegalStateException().isThrownBy(() -> pidFd.kill(0));
    assertThatIllegalStateException().isThrownBy(pidFd::fd);
  }
}
