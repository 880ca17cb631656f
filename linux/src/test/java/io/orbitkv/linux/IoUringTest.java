package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class IoUringTest {
  private static final int PAGE = DirectFile.ALIGNMENT;

  @TempDir private Path directory;

  @BeforeEach
  void needsIoUring() {
    String why = IoUring.whyUnavailable();
    assumeTrue(why == null, why);
  }

  private static Map<Long, Integer> complete(IoUring ring, int count) {
    Map<Long, Integer> results = new HashMap<>();
    while (results.size() < count) {
      assertThat(Poll.poll(ring.fd(), Poll.IN, 10_000)).isNotZero();
      while (ring.nextCompletion()) {
        results.put(ring.data(), ring.result());
      }
    }
    return results;
  }

  @Test
  void shouldReadWhatWasWrittenInOneBatchEach() {
    try (var arena = Arena.ofConfined();
        var file = DirectFile.open(directory.resolve("data"), 0600);
        var ring = IoUring.create(8)) {
      file.allocate(8L * PAGE);
      MemorySegment memory = arena.allocate(8L * PAGE, PAGE);
      for (int i = 0; i < 8; i++) {
        MemorySegment page = memory.asSlice((long) i * PAGE, PAGE).fill((byte) (i + 1));
        assertThat(ring.tryWrite(file, (long) i * PAGE, page, PAGE, 100 + i)).isTrue();
      }
      ring.submit();
      assertThat(complete(ring, 8)).hasSize(8).containsEntry(107L, PAGE);

      memory.fill((byte) 0);
      for (int i = 0; i < 8; i++) { // each page to the place of another
        MemorySegment page = memory.asSlice((7L - i) * PAGE, PAGE);
        assertThat(ring.tryRead(file, (long) i * PAGE, page, PAGE, i)).isTrue();
      }
      ring.submit();
      complete(ring, 8);

      for (int i = 0; i < 8; i++) {
        assertThat(memory.get(JAVA_BYTE, (7L - i) * PAGE)).isEqualTo((byte) (i + 1));
      }
      assertThat(ring.unsubmitted()).isZero();
    }
  }

  @Test
  void shouldDeclineWhenFullAndReportErrorsAndShortReads() {
    try (var arena = Arena.ofConfined();
        var file = DirectFile.open(directory.resolve("data"), 0600);
        var ring = IoUring.create(2)) {
      file.allocate(2L * PAGE);
      MemorySegment memory = arena.allocate(2L * PAGE, PAGE);
      assertThat(ring.tryRead(file, -PAGE, memory, PAGE, 1)).isTrue();
      assertThat(ring.tryRead(file, PAGE, memory, 2 * PAGE, 2)).isTrue();
      assertThat(ring.tryRead(file, 0, memory, PAGE, 3)).isFalse();
      ring.submit();

      assertThat(complete(ring, 2)).containsEntry(1L, -Errno.EINVAL).containsEntry(2L, PAGE);
      assertThat(ring.tryRead(file, 0, memory, PAGE, 3)).isTrue();
    }
  }
}
