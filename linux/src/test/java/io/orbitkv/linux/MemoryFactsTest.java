package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemoryFactsTest {
  private static final long AVAILABLE = 1_000_000L << 10;

  @TempDir private Path directory;

  @BeforeEach
  void machine() throws IOException {
    write("proc/meminfo", "MemTotal:  2000000 kB\nMemAvailable:    1000000 kB\nBuffers: 1 kB\n");
  }

  private void write(String name, String text) throws IOException {
    var path = directory.resolve(name);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }

  private MemoryFacts read() throws IOException {
    return MemoryFacts.read(directory.resolve("proc"), directory.resolve("cgroup"));
  }

  @Test
  void shouldHaveMachineLimitOnlyWithoutCgroups() throws IOException {
    assertThat(read()).isEqualTo(new MemoryFacts(AVAILABLE, Long.MAX_VALUE, 0));
    assertThat(read().freeBytes()).isEqualTo(AVAILABLE);
  }

  @Test
  void shouldTakeTightestAncestorOfVersionTwo() throws IOException {
    write("proc/self/cgroup", "0::/a/b/c\n");
    write("cgroup/a/b/c/memory.max", "max\n");
    write("cgroup/a/b/c/memory.current", "10\n");
    write("cgroup/a/b/memory.max", "5000\n");
    write("cgroup/a/b/memory.current", "1000\n");
    write("cgroup/a/memory.max", "6000\n");
    write("cgroup/a/memory.current", "5500\n");

    assertThat(read()).isEqualTo(new MemoryFacts(AVAILABLE, 6000, 5500));
    assertThat(read().freeBytes()).isEqualTo(500);
  }

  @Test
  void shouldNotCountInactiveFilePages() throws IOException {
    write("proc/self/cgroup", "0::/a\n");
    write("cgroup/a/memory.max", "6000\n");
    write("cgroup/a/memory.current", "5500\n");
    write("cgroup/a/memory.stat", "anon 1\ninactive_anon 7\ninactive_file 1500\n");

    assertThat(read().cgroupUsedBytes()).isEqualTo(4000);
  }

  @Test
  void shouldTakeTightestAncestorOfVersionOne() throws IOException {
    write("proc/self/cgroup", "5:devices:/z\n4:cpu,memory:/a/b\n1:name=systemd:/\n0::/\n");
    write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("cgroup/memory/a/memory.limit_in_bytes", "6000\n");
    write("cgroup/memory/a/memory.usage_in_bytes", "4000\n");
    write("cgroup/memory/a/memory.stat", "inactive_file 9\ntotal_inactive_file 1000\n");
    write("cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");

    assertThat(read()).isEqualTo(new MemoryFacts(AVAILABLE, 6000, 3000));
  }

  @Test
  void shouldFindVersionTwoBesideVersionOne() throws IOException {
    write("proc/self/cgroup", "4:memory:/\n0::/a\n");
    write("cgroup/unified/a/memory.max", "100\n");
    write("cgroup/unified/a/memory.current", "1\n");

    assertThat(read().cgroupLimitBytes()).isEqualTo(100);
  }

  @Test
  void shouldFindLimitAtRootWhenPathIsOfOutside() throws IOException {
    write("proc/self/cgroup", "4:memory:/docker/abc\n0::/../../elsewhere\n");
    write("cgroup/memory/memory.limit_in_bytes", "7000\n");
    write("cgroup/memory/memory.usage_in_bytes", "7500\n");

    assertThat(read().cgroupLimitBytes()).isEqualTo(7000);
    assertThat(read().freeBytes()).isZero();
  }

  @Test
  void shouldRefuseMachineWithoutFacts() throws IOException {
    write("proc/meminfo", "MemTotal: 1 kB\n");

    assertThatIOException().isThrownBy(this::read).withMessageContaining("MemAvailable");
  }

  @Test
  void shouldReadThisMachine() throws IOException {
    assertThat(MemoryFacts.read().availableBytes()).isPositive();
    assertThat(MemoryFacts.read().freeBytes()).isPositive();
  }
}
