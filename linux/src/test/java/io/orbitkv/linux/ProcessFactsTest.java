package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link Ids} and {@link CpuClock}. */
class ProcessFactsTest {
  @TempDir private Path directory;

  @Test
  void shouldKnowItself() throws IOException {
    assertThat((long) Ids.pid()).isEqualTo(ProcessHandle.current().pid());
    assertThat(Ids.uid()).isEqualTo(Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
    assertThat(Ids.gid()).isEqualTo(Files.getAttribute(Path.of("/proc/self"), "unix:gid"));
  }

  @Test
  void shouldAddUserAndKernelTime() throws IOException {
    Files.createDirectory(directory.resolve("7"));
    Files.writeString(
        directory.resolve("7/stat"),
        "7 (a) S (b)) S 1 2 3 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 1 0 1 1 1\n");

    assertThat(CpuClock.cpuSeconds(directory, 7)).isEqualTo(3.0);
  }

  @Test
  void shouldReadClockOfLivingProcessOnly() throws IOException {
    assertThat(CpuClock.cpuSeconds(Ids.pid())).isPositive();
    assertThatIOException().isThrownBy(() -> CpuClock.cpuSeconds(-1));
  }
}
