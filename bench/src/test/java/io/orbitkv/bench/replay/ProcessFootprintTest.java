package io.orbitkv.bench.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import org.junit.jupiter.api.Test;

class ProcessFootprintTest {
  @Test
  void shouldAddTheGenerationsOfAHeap() throws IOException {
    String serial =
        """
        812:
         DefNew     total 9792K, used 1041K [0x1, 0x2, 0x3)
          eden space 8704K,  11% used [0x1, 0x2, 0x3)
         Tenured    total 21888K, used 2000K [0x1, 0x2, 0x3)
         Metaspace       used 4567K, committed 4800K, reserved 1114112K
          class space    used 400K, committed 512K, reserved 1048576K
        """;
    assertThat(ProcessFootprint.heapKib(serial)).isEqualTo(3041);
    assertThatThrownBy(() -> ProcessFootprint.heapKib("812:\nno such thing\n"))
        .isInstanceOf(IOException.class);
  }

  @Test
  void shouldSeeThisProcess() throws IOException {
    ProcessFootprint found = ProcessFootprint.of(ProcessHandle.current().pid());
    assertThat(found.heapKib()).isPositive();
    assertThat(found.anonymousKib()).isGreaterThan(found.heapKib());
    assertThat(found.files()).isPositive();
  }
}
