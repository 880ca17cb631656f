package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LinuxExceptionTest {
  @Test
  void shouldNameCallErrnoAndFacts() {
    var exception = new LinuxException("open", 13, "path=/x, mode=0600");

    assertThat(exception)
        .hasMessage("open failed: errno=13 (EACCES), path=/x, mode=0600")
        .returns("open", LinuxException::call)
        .returns(13, LinuxException::errno);
  }

  @Test
  void shouldSayWhenErrnoHasNoName() {
    assertThat(new LinuxException("read", 4095, ""))
        .hasMessage("read failed: errno=4095 (unknown)");
  }

  @Test
  void shouldReadErrnoOfLastCall() {
    assertThat(FileCalls.ftruncate(-1, 0)).isEqualTo(-1);

    assertThat(LinuxException.last("ftruncate", "").errno()).isEqualTo(Errno.EBADF);
  }
}
