package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

class StatusCommandTest {
  @Test
  void shouldPrintEachValueOnALine() {
    String json =
        "{\"state\":\"ready\",\"manager_pid\":12345,\"pool_used_bytes\":65536,\"leases\":1200,"
            + "\"misses_total\":{\"EVICTED\":3},\"session_list\":[{\"slot\":0},{\"slot\":1}]}";
    StringWriter out = new StringWriter();

    StatusCommand.print(new PrintWriter(out), "", new JsonMapper().readTree(json));

    assertThat(out.toString().lines().map(line -> line.replaceAll(" +", " ")))
        .containsExactly(
            "state ready",
            "manager pid 12345",
            "pool used bytes 65,536 (64.0 KB)",
            "leases 1,200",
            "misses total",
            " EVICTED 3",
            "session list",
            " slot 0",
            "",
            " slot 1",
            "");
  }
}
