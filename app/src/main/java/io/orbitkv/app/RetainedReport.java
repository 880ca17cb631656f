package io.orbitkv.app;

import io.orbitkv.channel.Protocol;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import tools.jackson.databind.JsonNode;

/** What a Manager retains, for a person: each operation, and for each reason the way out. */
final class RetainedReport {
  private static final Map<String, String> REASONS =
      Map.of(
          "process_lives",
              "The session is over, but its process lives and may still copy. It ends by itself when"
                  + " the copy has drained; else end that process.",
          "not_observed",
              "The end of the process can not be observed from here, as across PID namespaces. It"
                  + " ends when the copy has drained; else restart the Manager, or run it in the"
                  + " engine's PID namespace.",
          "device",
              "The process has exited, but copies of its device may outlive it. Restart the Manager"
                  + " once the device is known to be idle.",
          "fault",
              "The Manager met a fault of its own, which its log names. What the operation owns stays"
                  + " until the Manager is restarted.");

  private RetainedReport() {}

  /**
   * Prints it.
   *
   * @param status the Manager's status
   */
  static void print(PrintWriter out, JsonNode status) {
    out.printf(
        Locale.ROOT,
        "%,d operations retained, %s of the pool; %,d of %,d session slots in use, %,d by ended"
            + " sessions%n",
        status.path("retained_operations").asLong(),
        ByteSize.format(status.path("retained_bytes").asLong()),
        status.path("sessions").asLong() + status.path("sessions_retained").asLong(),
        Protocol.MAX_SESSIONS,
        status.path("sessions_retained").asLong());
    TreeSet<String> reasons = new TreeSet<>();
    for (JsonNode each : status.path("retained_list")) {
      reasons.add(each.path("reason").asString(""));
      printLine(out, each);
    }
    long left = status.path("retained_operations").asLong() - status.path("retained_list").size();
    if (left > 0) {
      out.printf(Locale.ROOT, "  and %,d more%n", left);
    }
    for (String reason : reasons) {
      out.printf(
          Locale.ROOT, "%s: %s%n", reason, REASONS.getOrDefault(reason, "See the documentation."));
    }
  }

  private static void printLine(PrintWriter out, JsonNode each) {
    out.printf(
        Locale.ROOT,
        "  slot %d, pid %d, instance \"%s\": %s in record %d, %s, for %.1f s, %s%n",
        each.path("slot").asInt(),
        each.path("pid").asInt(),
        each.path("instance").asString(""),
        each.path("kind").asString(""),
        each.path("record").asInt(),
        ByteSize.format(each.path("bytes").asLong()),
        each.path("age_seconds").asDouble(),
        each.path("reason").asString(""));
  }
}
