package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SocketWatchTest {
  @TempDir private Path directory;
  private Path path;
  private SocketWatch watch;

  @BeforeEach
  void watch() {
    path = directory.resolve("socket");
    watch = new SocketWatch(path);
  }

  private int attemptsOnWhatIsNew() {
    int attempts = 0;
    while (watch.hasNewFile()) {
      watch.attempt();
      attempts++;
    }
    return attempts;
  }

  @Test
  void shouldHoldNoFileForNew() {
    assertThat(attemptsOnWhatIsNew()).isZero();
    watch.attempt();
    assertThat(attemptsOnWhatIsNew()).isZero();
  }

  @Test
  void shouldTryAFileThatRefusesSomeTimesAndThenNoMore() throws IOException {
    watch.attempt();
    Files.createFile(path);
    assertThat(attemptsOnWhatIsNew()).isEqualTo(5);
    watch.attempt();
    assertThat(attemptsOnWhatIsNew()).isZero();
    Files.setLastModifiedTime(path, FileTime.fromMillis(1));
    assertThat(attemptsOnWhatIsNew()).as("another file").isEqualTo(5);
  }

  @Test
  void shouldHoldAFileForOldThatHasTakenAConnection() throws IOException {
    Files.createFile(path);
    watch.attempt();
    watch.answered();
    assertThat(attemptsOnWhatIsNew()).isZero();
    Files.delete(path);
    assertThat(attemptsOnWhatIsNew()).isZero();
    Files.createFile(path);
    Files.setLastModifiedTime(path, FileTime.fromMillis(1));
    assertThat(attemptsOnWhatIsNew()).isEqualTo(5);
  }
}
