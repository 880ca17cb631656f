package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.orbitkv.linux.Mapping.Access;
import io.orbitkv.linux.Memfd.PageSize;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
class MemfdTest {
  private static final long BYTES = 1 << 20;
  private static final int F_ADD_SEALS = 1033;
  private static final int F_SEAL_WRITE = 8;
  private static final int MFD_ALLOW_SEALING = 2;

  @Test
  void shouldSealSizeBothWays() {
    try (var fd = Memfd.create("sealed", BYTES, PageSize.NORMAL)) {
      assertThat(FileCalls.ftruncate(fd.value(), BYTES / 2)).isEqualTo(-1);
      assertThat(CallState.errno()).isEqualTo(Errno.EPERM);
      assertThat(FileCalls.ftruncate(fd.value(), BYTES * 2)).isEqualTo(-1);
      assertThat(CallState.errno()).isEqualTo(Errno.EPERM);
      assertThat(Memfd.byteSize(fd)).isEqualTo(BYTES);
    }
  }

  @Test
  void shouldSealSeals() {
    try (var fd = Memfd.create("sealed", BYTES, PageSize.NORMAL)) {
      assertThat(FileCalls.fcntl(fd.value(), F_ADD_SEALS, F_SEAL_WRITE)).isEqualTo(-1);
      assertThat(CallState.errno()).isEqualTo(Errno.EPERM);
    }
  }

  @Test
  void shouldRefuseSizesThatAreNoFile() {
    assertThatIllegalArgumentException().isThrownBy(() -> Memfd.create("x", 0, PageSize.NORMAL));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Memfd.create("x", BYTES, PageSize.HUGE_2M))
        .withMessageContaining("byteSize=1048576");
  }

  @Test
  void shouldRefuseLongName() {
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> Memfd.create("x".repeat(300), BYTES, PageSize.NORMAL))
        .returns("memfd_create", LinuxException::call)
        .returns(Errno.EINVAL, LinuxException::errno);
  }

  @Test
  void shouldLeaveNothingWhenHugePagesAreMissing() {
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> Memfd.create("x", 1L << 40, PageSize.HUGE_2M))
        .withMessageContaining("pages=HUGE_2M");
  }

  @Test
  void shouldReopenForReadingOnly() {
    try (var fd = Memfd.create("shared", BYTES, PageSize.NORMAL);
        var readOnly = Memfd.reopenReadOnly(fd);
        var writable = Mapping.map(fd, BYTES, Access.READ_WRITE, false);
        var readable = Mapping.map(readOnly, BYTES, Access.READ_ONLY, false)) {
      Memfd.checkSealed(readOnly, BYTES);
      writable.segment().set(JAVA_LONG, 64, 7);

      assertThat(readable.segment().get(JAVA_LONG, 64)).isEqualTo(7);
      assertThatExceptionOfType(LinuxException.class)
          .isThrownBy(() -> Mapping.map(readOnly, BYTES, Access.READ_WRITE, false))
          .withMessageContaining("access=READ_WRITE")
          .returns(Errno.EACCES, LinuxException::errno);
    }
  }

  @Test
  void shouldRefuseUnsealedFile() {
    try (var fd = Fd.own(MemoryCalls.memfdCreate("unsealed", MFD_ALLOW_SEALING))) {
      assertThat(FileCalls.ftruncate(fd.value(), BYTES)).isZero();

      assertThatIllegalArgumentException()
          .isThrownBy(() -> Memfd.checkSealed(fd, BYTES))
          .withMessageContaining("seals=0x0, wantedSeals=0x7");
    }
  }

  @Test
  void shouldRefuseFileOfOtherSize() {
    try (var fd = Memfd.create("sealed", BYTES, PageSize.NORMAL)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Memfd.checkSealed(fd, BYTES * 2))
          .withMessageContaining("byteSize=1048576, wantedByteSize=2097152");
    }
  }

  @Test
  void shouldRefuseFileWithoutSeals() {
    try (var fd = Fd.own(WaitCalls.eventfd())) {
      assertThatExceptionOfType(LinuxException.class)
          .isThrownBy(() -> Memfd.checkSealed(fd, BYTES))
          .returns(Errno.EINVAL, LinuxException::errno);
    }
  }
}
