package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class MemmoveTest {
  private static final int BYTES = 4096;

  private static MemorySegment filled(Arena arena, int seed) {
    MemorySegment segment = arena.allocate(BYTES);
    for (int i = 0; i < BYTES; i++) {
      segment.set(ValueLayout.JAVA_BYTE, i, (byte) (seed + i * 31));
    }
    return segment;
  }

  @Test
  void shouldCopyJustTheRange() {
    try (var arena = Arena.ofConfined()) {
      MemorySegment src = filled(arena, 1);
      MemorySegment dst = filled(arena, 77);
      MemorySegment before = arena.allocate(BYTES).copyFrom(dst);

      Memmove.copy(src, 100, dst, 1001, 2000);

      assertThat(dst.asSlice(1001, 2000).mismatch(src.asSlice(100, 2000))).isEqualTo(-1);
      assertThat(dst.asSlice(0, 1001).mismatch(before.asSlice(0, 1001))).isEqualTo(-1);
      assertThat(dst.asSlice(3001).mismatch(before.asSlice(3001))).isEqualTo(-1);
    }
  }

  @Test
  void shouldRefuseRangesOutsideTheirSegments() {
    try (var arena = Arena.ofConfined()) {
      MemorySegment src = filled(arena, 1);
      MemorySegment dst = filled(arena, 2);

      assertThatThrownBy(() -> Memmove.copy(src, 1, dst, 0, BYTES))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> Memmove.copy(src, 0, dst, 1, BYTES))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> Memmove.copy(src, 0, dst, 0, -1))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThat(dst.mismatch(filled(arena, 2))).isEqualTo(-1);
    }
  }

  @Test
  void shouldRefuseReadOnlyDestination() {
    try (var arena = Arena.ofConfined()) {
      MemorySegment dst = filled(arena, 2);

      assertThatThrownBy(() -> Memmove.copy(filled(arena, 1), 0, dst.asReadOnly(), 0, 8))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("read-only");
      assertThat(dst.mismatch(filled(arena, 2))).isEqualTo(-1);
    }
  }

  @Test
  void shouldRefuseMemoryThatIsGone() {
    try (var arena = Arena.ofConfined()) {
      MemorySegment src;
      try (var gone = Arena.ofShared()) {
        src = filled(gone, 1);
      }

      assertThatThrownBy(() -> Memmove.copy(src, 0, filled(arena, 2), 0, 8))
          .isInstanceOf(IllegalStateException.class);
    }
  }
}
