package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThatCode;

import org.junit.jupiter.api.Test;

class EarlyStartTest {
  @Test
  void shouldNameClassesThatExist() {
    for (String name : EarlyStart.HANDLES) {
      assertThatCode(() -> Class.forName(name)).as(name).doesNotThrowAnyException();
    }
  }
}
