package io.orbitkv.channel;

import java.nio.file.Path;
import java.util.Map;

/** Where a Manager listens and a client looks for it. */
public final class SocketPaths {
  /** Environment variable that names the socket. */
  public static final String VARIABLE = "ORBITKV_SOCKET";

  private static final String RELATIVE = "orbitkv/manager.sock";

  private SocketPaths() {}

  /**
   * The socket that both sides use unless told otherwise: that of {@link #VARIABLE}; else one in
   * the user's run-time directory; else one in the system's for root and in a directory of the
   * user's own for others.
   *
   * @param env environment of the process
   * @param uid effective user
   */
  public static Path defaultSocket(Map<String, String> env, int uid) {
    String named = env.getOrDefault(VARIABLE, "");
    if (!named.isEmpty()) {
      return Path.of(named);
    }
    String runtime = env.getOrDefault("XDG_RUNTIME_DIR", "");
    if (!runtime.isEmpty()) {
      return Path.of(runtime, RELATIVE);
    }
    return uid == 0
        ? Path.of("/run", RELATIVE)
        : Path.of("/tmp/orbitkv-" + Integer.toUnsignedString(uid), RELATIVE);
  }
}
