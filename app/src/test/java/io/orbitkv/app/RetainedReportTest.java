package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

class RetainedReportTest {
  private static String report(String status) {
    StringWriter text = new StringWriter();
    PrintWriter out = new PrintWriter(text);
    RetainedReport.print(out, new JsonMapper().readTree(status));
    out.flush();
    return text.toString();
  }

  @Test
  void shouldSayWhoHoldsWhatAndTheWayOut() {
    String report =
        report(
            """
            {"retained_operations": 2, "retained_bytes": 131072, "sessions": 3, "sessions_retained": 1,
             "retained_list": [{"slot": 4, "pid": 77, "instance": "a", "record": 9, "kind": "restore",
              "reason": "process_lives", "age_seconds": 12.34, "bytes": 65536}]}
            """);

    assertThat(report)
        .contains("2 operations retained, 128.0 KB", "4 of 64 session slots", "1 by ended")
        .contains("slot 4, pid 77, instance \"a\": restore in record 9, 64.0 KB, for 12.3 s")
        .contains("and 1 more")
        .contains("process_lives: The session is over", "end that process");
  }

  @Test
  void shouldSayThatNothingIsRetained() {
    assertThat(report("{\"retained_operations\": 0, \"sessions\": 1, \"retained_list\": []}"))
        .isEqualToIgnoringNewLines(
            "0 operations retained, 0 B of the pool; 1 of 64 session slots in use,"
                + " 0 by ended sessions");
  }
}
