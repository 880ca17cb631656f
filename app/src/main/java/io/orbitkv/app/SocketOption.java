package io.orbitkv.app;

import io.orbitkv.channel.SocketPaths;
import io.orbitkv.linux.Ids;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The flag that names the Manager's socket. */
final class SocketOption {
  static final String NAME = "--socket";
  static final String LABEL = "FILE";
  static final String DESCRIPTION =
      "Unix socket of the Manager. Default: orbitkv/manager.sock in $XDG_RUNTIME_DIR,"
          + " in /run for root, in /tmp/orbitkv-UID otherwise.";

  @Option(names = NAME, paramLabel = LABEL, description = DESCRIPTION)
  private Path socket;

  /** The chosen socket, or the default one. */
  Path path() {
    return orDefault(socket);
  }

  /** The socket that was chosen, or the default one for null. */
  static Path orDefault(Path chosen) {
    return chosen != null ? chosen : SocketPaths.defaultSocket(System.getenv(), Ids.uid());
  }
}
