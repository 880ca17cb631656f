package io.orbitkv.app;

import io.orbitkv.client.AdminClient;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Says where a block is, or why it is nowhere. */
@Command(name = "explain", description = "Says where a block is, or why it is nowhere.")
final class ExplainCommand implements Callable<Integer> {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  @Mixin private SocketOption socket;

  @Option(
      names = "--namespace",
      paramLabel = "HEX",
      required = true,
      converter = HexBytes.Namespace.class,
      description = "Namespace, 64 hexadecimal digits.")
  private HexBytes namespace;

  @Parameters(
      paramLabel = "HASH",
      converter = HexBytes.Hash.class,
      description = "Block hash, in hexadecimal digits.")
  private HexBytes hash;

  @Option(names = "--json", description = "Print the Manager's answer as it is.")
  private boolean json;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() {
    String answer = AdminClient.explain(socket.path(), namespace.bytes(), hash.bytes(), TIMEOUT);
    StatusCommand.printAnswer(spec.commandLine().getOut(), answer, json);
    return 0;
  }
}
