package io.orbitkv.app;

import io.orbitkv.client.AdminClient;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Removes blocks from every tier of the running Manager. */
@Command(
    name = "clear",
    description =
        "Removes a namespace, or everything, from every tier of the running Manager, and says what"
            + " was removed. Leases in use stay valid.")
final class ClearCommand implements Callable<Integer> {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  @Mixin private SocketOption socket;

  @Option(
      names = "--namespace",
      paramLabel = "HEX",
      converter = HexBytes.Namespace.class,
      description = "Namespace, 64 hexadecimal digits. Default: everything.")
  private HexBytes namespace;

  @Option(names = "--json", description = "Print the Manager's answer as it is.")
  private boolean json;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() {
    String answer =
        AdminClient.clear(socket.path(), namespace == null ? null : namespace.bytes(), TIMEOUT);
    StatusCommand.printAnswer(spec.commandLine().getOut(), answer, json);
    return 0;
  }
}
