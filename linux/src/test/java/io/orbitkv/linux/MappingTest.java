package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.orbitkv.linux.Mapping.Access;
import io.orbitkv.linux.Memfd.PageSize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
class MappingTest {
  private static final long BYTES = 1 << 20;

  private static Mapping mapped(Access access, boolean populate) {
    try (var fd = Memfd.create("mapping-test", BYTES, PageSize.NORMAL)) {
      return Mapping.map(fd, BYTES, access, populate);
    }
  }

  @Test
  void shouldShareBytesBetweenMappings() {
    try (var fd = Memfd.create("mapping-test", BYTES, PageSize.NORMAL);
        var one = Mapping.map(fd, BYTES, Access.READ_WRITE, false);
        var other = Mapping.map(fd, BYTES, Access.READ_WRITE, true)) {
      one.segment().set(JAVA_LONG, BYTES - 8, 42);

      assertThat(other.segment().get(JAVA_LONG, BYTES - 8)).isEqualTo(42);
    }
  }

  @Test
  void shouldStartOnPageAndEndAtSize() {
    try (var mapping = mapped(Access.READ_WRITE, false)) {
      assertThat(mapping.segment().address() % MemoryCalls.pageBytes()).isZero();
      assertThat(mapping.byteSize()).isEqualTo(BYTES);
      assertThatExceptionOfType(IndexOutOfBoundsException.class)
          .isThrownBy(() -> mapping.segment().get(JAVA_BYTE, BYTES));
    }
  }

  @Test
  void shouldRefuseAccessAfterClose() throws IOException {
    var mapping = mapped(Access.READ_WRITE, true);
    var slice = mapping.segment().asSlice(4096, 4096);
    assertThat(Files.readString(Path.of("/proc/self/maps"))).contains("/memfd:mapping-test");

    mapping.close();
    mapping.close();

    assertThat(Files.readString(Path.of("/proc/self/maps"))).doesNotContain("/memfd:mapping-test");
    assertThatIllegalStateException().isThrownBy(() -> slice.get(JAVA_BYTE, 0));
    assertThatIllegalStateException().isThrownBy(() -> mapping.populateRead(0, BYTES));
  }

  @Test
  void shouldRefuseWritesWhenReadOnly() {
    try (var mapping = mapped(Access.READ_ONLY, false)) {
      assertThat(mapping.segment().isReadOnly()).isTrue();
      assertThatExceptionOfType(UnsupportedOperationException.class)
          .isThrownBy(() -> mapping.populateWrite(0, BYTES));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> mapping.segment().set(JAVA_BYTE, 0, (byte) 1));
    }
  }

  @Test
  void shouldStayOutOfForkedChildren() throws IOException {
    try (var mapping = mapped(Access.READ_WRITE, false)) {
      assertThat(Smaps.field(mapping.segment(), "VmFlags").split(" ")).doesNotContain("dc");

      assertThat(mapping.doNotFork()).isSameAs(mapping);

      assertThat(Smaps.field(mapping.segment(), "VmFlags").split(" ")).contains("dc");
    }
  }

  @Test
  void shouldPopulateRangeForWriting() throws IOException {
    try (var mapping = mapped(Access.READ_WRITE, false)) {
      assertThat(Smaps.residentBytes(mapping.segment())).isZero();

      mapping.populateWrite(BYTES / 2 + 100, BYTES / 2 - 100);

      assertThat(Smaps.residentBytes(mapping.segment())).isEqualTo(BYTES / 2);
    }
  }

  @Test
  void shouldPopulateRangeForReading() throws IOException {
    try (var mapping = mapped(Access.READ_ONLY, false)) {
      mapping.populateRead(0, BYTES);
      mapping.populateRead(BYTES, 0);

      assertThat(Smaps.residentBytes(mapping.segment())).isEqualTo(BYTES);
    }
  }

  @Test
  void shouldPopulateWhileMapping() throws IOException {
    try (var mapping = mapped(Access.READ_WRITE, true)) {
      assertThat(Smaps.residentBytes(mapping.segment())).isEqualTo(BYTES);
    }
  }

  @Test
  void shouldRefuseToPopulateBeyondEnd() {
    try (var mapping = mapped(Access.READ_WRITE, false)) {
      assertThatExceptionOfType(IndexOutOfBoundsException.class)
          .isThrownBy(() -> mapping.populateRead(1, BYTES));
    }
  }

  @Test
  void shouldKeepBytesWhenTouching() throws IOException {
    try (var mapping = mapped(Access.READ_WRITE, false)) {
      long page = MemoryCalls.pageBytes();
      mapping.segment().set(JAVA_BYTE, page, (byte) 9);
      mapping.segment().set(JAVA_BYTE, 2 * page, (byte) 8);

      Mapping.touch(mapping.segment(), false);
      Mapping.touch(mapping.segment(), true);
      Mapping.touch(mapping.segment().asSlice(page, page + 1), true);

      assertThat(mapping.segment().get(JAVA_BYTE, page)).isEqualTo((byte) 9);
      assertThat(mapping.segment().get(JAVA_BYTE, 2 * page)).isEqualTo((byte) 8);
      assertThat(Smaps.residentBytes(mapping.segment())).isEqualTo(BYTES);
    }
  }

  @Test
  void shouldMapFreshMemory() throws IOException {
    try (var plain = Mapping.anonymous(BYTES, false);
        var advised = Mapping.anonymous(8 * BYTES, true)) {
      assertThat(plain.segment().get(JAVA_LONG, 0)).isZero();
      plain.segment().fill((byte) 1);
      assertThat(Smaps.field(advised.segment(), "VmFlags").split(" ")).contains("hg");
    }
  }

  @Test
  void shouldRefuseSizeThatIsNoMemory() {
    assertThatIllegalArgumentException().isThrownBy(() -> Mapping.anonymous(0, false));
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> Mapping.anonymous(1L << 60, false))
        .returns(Errno.ENOMEM, LinuxException::errno);
  }
}
