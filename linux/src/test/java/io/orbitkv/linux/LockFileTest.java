package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(LeakCheck.class)
@Timeout(60)
class LockFileTest {
  @TempDir private Path directory;

  private Path path() {
    return directory.resolve("x.lock");
  }

  @Test
  void shouldHoldUntilClosed() {
    try (var lock = LockFile.tryLock(path(), 0600)) {
      assertThat(lock.path()).isEqualTo(path());
      assertThat(LockFile.holderPid(path())).isEqualTo(Ids.pid());
      assertThat(LockFile.tryLock(path(), 0600)).isNull();
    }

    assertThat(path()).doesNotExist();
    var again = LockFile.tryLock(path(), 0600);
    assertThat(again).isNotNull();
    again.close();
    again.close();
  }

  @Test
  void shouldYieldToOtherProcessUntilItDies() throws Exception {
    var script = "exec 9>\"$0\"; flock -n 9 && echo $$ >&9 && echo held; exec sleep 60";
    var child = new ProcessBuilder("sh", "-c", script, path().toString()).start();
    try (var output = child.inputReader()) {
      assertThat(output.readLine()).isEqualTo("held");
      assertThat(LockFile.tryLock(path(), 0600)).isNull();
      assertThat(LockFile.holderPid(path())).isEqualTo((int) child.pid());

      child.destroyForcibly().waitFor();

      try (var lock = LockFile.tryLock(path(), 0600)) {
        assertThat(lock).isNotNull();
        assertThat(LockFile.holderPid(path())).isEqualTo(Ids.pid());
      }
    } finally {
      child.destroyForcibly();
    }
  }

  @Test
  void shouldBeHeldAgainstOtherProcess() throws Exception {
    try (var _ = LockFile.tryLock(path(), 0600)) {
      var child = new ProcessBuilder("flock", "-n", path().toString(), "true").start();

      assertThat(child.waitFor()).isEqualTo(1);
    }
  }

  @Test
  void shouldRefuseSymbolicLink() throws IOException {
    Files.createSymbolicLink(path(), directory.resolve("elsewhere"));

    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> LockFile.tryLock(path(), 0600))
        .withMessageContaining("ELOOP");
    assertThat(directory.resolve("elsewhere")).doesNotExist();
  }

  @Test
  void shouldNotDeleteFileThatTookItsPlace() throws IOException {
    var lock = LockFile.tryLock(path(), 0600);
    Files.delete(path());
    Files.writeString(path(), "another's");

    lock.close();

    assertThat(path()).hasContent("another's");
  }

  @Test
  void shouldKnowNoHolderOfFileWithoutPid() throws IOException {
    assertThat(LockFile.holderPid(path())).isZero();
    Files.writeString(path(), "");
    assertThat(LockFile.holderPid(path())).isZero();
    Files.writeString(path(), "-5\n");
    assertThat(LockFile.holderPid(path())).isZero();
    Files.write(path(), new byte[] {(byte) 0xff, (byte) 0xfe});
    assertThat(LockFile.holderPid(path())).isZero();
  }

  @Test
  void shouldHaveOneHolderAtATime() throws Exception {
    var holders = new AtomicInteger();
    Callable<Integer> contender =
        () -> {
          int most = 0;
          for (int i = 0; i < 3_000; i++) {
            try (var lock = LockFile.tryLock(path(), 0600)) {
              if (lock != null) {
                most = Math.max(most, holders.incrementAndGet());
                holders.decrementAndGet();
              }
            }
          }
          return most;
        };
    try (var threads = Executors.newFixedThreadPool(3)) {
      var first = threads.submit(contender);
      var second = threads.submit(contender);
      var third = threads.submit(contender);

      assertThat(first.get()).isLessThanOrEqualTo(1);
      assertThat(second.get()).isLessThanOrEqualTo(1);
      assertThat(third.get()).isLessThanOrEqualTo(1);
    }
  }
}
