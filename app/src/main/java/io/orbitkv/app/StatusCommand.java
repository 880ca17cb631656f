package io.orbitkv.app;

import io.orbitkv.client.AdminClient;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Prints what the running Manager holds. */
@Command(name = "status", description = "Prints what the running Manager holds.")
final class StatusCommand implements Callable<Integer> {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);

  @Mixin private SocketOption socket;

  @Option(names = "--json", description = "Print the Manager's answer as it is.")
  private boolean json;

  @Option(
      names = "--retained",
      description = "Print what is held because evidence of its end is missing, and the way out.")
  private boolean retained;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() {
    String status = AdminClient.status(socket.path(), TIMEOUT);
    PrintWriter out = spec.commandLine().getOut();
    if (retained && !json) {
      RetainedReport.print(out, new JsonMapper().readTree(status));
      out.flush();
    } else {
      printAnswer(out, status, json);
    }
    return 0;
  }

  /** Prints an answer of the Manager: as it is, or a line for each value. */
  static void printAnswer(PrintWriter out, String answer, boolean asItIs) {
    if (asItIs) {
      out.println(answer);
    } else {
      print(out, "", new JsonMapper().readTree(answer));
    }
    out.flush();
  }

  /** One line for each value; objects and lists are indented below their name. */
  static void print(PrintWriter out, String indent, JsonNode node) {
    for (Map.Entry<String, JsonNode> each : node.properties()) {
      String name = each.getKey().replace('_', ' ');
      JsonNode value = each.getValue();
      if (value.isObject() && !value.isEmpty()) {
        out.printf(Locale.ROOT, "%s%s%n", indent, name);
        print(out, indent + "  ", value);
      } else if (value.isArray() && !value.isEmpty() && value.get(0).isObject()) {
        out.printf(Locale.ROOT, "%s%s%n", indent, name);
        for (JsonNode element : value) {
          print(out, indent + "  ", element);
          out.println();
        }
      } else {
        out.printf(Locale.ROOT, "%s%-26s %s%n", indent, name, text(each.getKey(), value));
      }
    }
  }

  private static String text(String key, JsonNode value) {
    if (key.contains("bytes") && value.isIntegralNumber()) {
      return String.format(
          Locale.ROOT, "%,d (%s)", value.longValue(), ByteSize.format(value.longValue()));
    }
    if (value.isIntegralNumber() && !key.endsWith("pid")) {
      return String.format(Locale.ROOT, "%,d", value.longValue());
    }
    return value.isString() ? value.stringValue() : value.toString();
  }
}
