package io.orbitkv.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import org.junit.jupiter.api.Test;

class ReferenceTest {
  @Test
  void shouldRunEachProgram() throws IOException {
    try (Reference reference = new Reference()) {
      assumeThat(reference.has("ring")).as("a C compiler").isTrue();
      assertThat(reference.run("ring", 0, 0, 10, 4)).containsKeys("p50_ns", "ops_per_s");
      assertThat(reference.secondsToFirstLine("touch", 1 << 20)).isPositive();
      assertThat(reference.has("copy")).isTrue();
      try (Reference.Conversation copy = reference.converse("copy", 0, 1 << 20, 1 << 20)) {
        for (String kind : new String[] {"out", "in", "nt"}) {
          assertThat(copy.ask(kind + " 4096 65536")).isPositive();
        }
      }
    }
  }
}
