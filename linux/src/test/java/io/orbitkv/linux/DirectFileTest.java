package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DirectFileTest {
  private static final int PAGE = DirectFile.ALIGNMENT;

  @TempDir private Path directory;

  @Test
  void shouldReadWhatWasWritten() {
    try (var arena = Arena.ofConfined();
        var file = DirectFile.open(directory.resolve("data"), 0600)) {
      MemorySegment memory = arena.allocate(2L * PAGE, PAGE);
      file.allocate(16L * PAGE);
      memory.fill((byte) 7);

      assertThat(file.write(3L * PAGE, memory, 2L * PAGE)).isEqualTo(2L * PAGE);
      memory.fill((byte) 0);
      assertThat(file.read(4L * PAGE, memory, PAGE)).isEqualTo(PAGE);

      assertThat(memory.get(JAVA_BYTE, PAGE - 1)).isEqualTo((byte) 7);
      assertThat(memory.get(JAVA_BYTE, PAGE)).isEqualTo((byte) 0);
      assertThat(file.byteSize()).isEqualTo(16L * PAGE);
    }
  }

  @Test
  void shouldReadZeroFromFreshlyAllocatedRoomAndShortAtTheEnd() {
    try (var arena = Arena.ofConfined();
        var file = DirectFile.open(directory.resolve("data"), 0600)) {
      MemorySegment memory = arena.allocate(4L * PAGE, PAGE);
      file.allocate(2L * PAGE);
      memory.fill((byte) 1);

      assertThat(file.read(PAGE, memory, 2L * PAGE)).isEqualTo(PAGE);
      assertThat(memory.get(JAVA_LONG, 0)).isZero();
      assertThat(file.read(8L * PAGE, memory, PAGE)).isZero();
    }
  }

  @Test
  void shouldReturnTheErrorOfAReadBeforeTheStart() {
    try (var arena = Arena.ofConfined();
        var file = DirectFile.open(directory.resolve("data"), 0600)) {
      file.allocate(2L * PAGE);

      assertThat(file.read(-PAGE, arena.allocate(PAGE, PAGE), PAGE)).isEqualTo(-Errno.EINVAL);
    }
  }

  @Test
  void shouldLockOnceUntilClosed() {
    Path path = directory.resolve("data");
    try (var second = DirectFile.open(path, 0600)) {
      try (var first = DirectFile.open(path, 0600)) {
        assertThat(first.tryLock()).isTrue();
        assertThat(second.tryLock()).isFalse();
      }
      assertThat(second.tryLock()).isTrue();
    }
  }

  @Test
  void shouldRefuseMoreRoomThanTheDeviceHas() throws IOException {
    try (var file = DirectFile.open(directory.resolve("data"), 0600)) {
      long tooMuch = Files.getFileStore(directory).getTotalSpace() + (1L << 40);

      assertThatThrownBy(() -> file.allocate(tooMuch / PAGE * PAGE))
          .isInstanceOf(LinuxException.class)
          .hasMessageContaining("fallocate failed");
    }
  }

  @Test
  void shouldRefuseASymbolicLink() throws IOException {
    Path link = Files.createSymbolicLink(directory.resolve("link"), directory.resolve("data"));

    assertThatThrownBy(() -> DirectFile.open(link, 0600).close())
        .isInstanceOf(LinuxException.class)
        .hasMessageContaining("ELOOP");
  }
}
