package io.orbitkv.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class BoundedTest {
  private static final Path FILE = Path.of("/mnt/file");

  @Test
  void shouldNotWaitForADeviceThatDoesNotAnswer() {
    CountDownLatch answer = new CountDownLatch(1);
    assertThatThrownBy(() ->
            Bounded.call(
                FILE,
                0,
                () -> {
                  answer.await();
                  return 1;
                }))
        .isInstanceOf(Bounded.NoAnswerException.class)
        .hasMessageContaining("does not answer: path=/mnt/file, waited s=0");
    answer.countDown();
  }

  @Test
  void shouldHandOnResultsAndFailures() throws IOException {
    assertThat(Bounded.<Integer>call(FILE, 20, () -> 5)).isEqualTo(5);
    assertThatThrownBy(() ->
            Bounded.call(
                FILE,
                20,
                () -> {
                  throw new IOException("no disk");
                }))
        .isInstanceOf(IOException.class)
        .hasMessage("no disk");
    assertThatThrownBy(() ->
            Bounded.call(
                FILE,
                20,
                () -> {
                  throw new StorageException("no format");
                }))
        .isInstanceOf(StorageException.class)
        .hasMessage("no format");
  }
}
