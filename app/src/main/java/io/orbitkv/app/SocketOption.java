package io.orbitkv.app;

import io.orbitkv.channel.SocketPaths;
import io.orbitkv.linux.Ids;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The flag that names the Manager's socket. */
final class SocketOption {
  @Option(
      names = "--socket",
      paramLabel = "FILE",
      description =
          "Unix socket of the Manager. Default: orbitkv/manager.sock in $XDG_RUNTIME_DIR,"
              + " in /run for root, in /tmp/orbitkv-UID otherwise.")
  private Path socket;

  /** The chosen socket, or the default one. */
  Path path() {
    return socket != null ? socket : SocketPaths.defaultSocket(System.getenv(), Ids.uid());
  }
}
