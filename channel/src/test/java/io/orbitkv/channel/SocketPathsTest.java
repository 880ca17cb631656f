package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class SocketPathsTest {
  @Test
  void shouldPreferNamedSocketThenRuntimeDirectoryThenUser() {
    Map<String, String> both =
        Map.of("ORBITKV_SOCKET", "/a/b.sock", "XDG_RUNTIME_DIR", "/run/user/7");
    Map<String, String> runtime = Map.of("ORBITKV_SOCKET", "", "XDG_RUNTIME_DIR", "/run/user/7");

    assertThat(SocketPaths.defaultSocket(both, 7)).hasToString("/a/b.sock");
    assertThat(SocketPaths.defaultSocket(runtime, 7))
        .hasToString("/run/user/7/orbitkv/manager.sock");
    assertThat(SocketPaths.defaultSocket(Map.of(), 0)).hasToString("/run/orbitkv/manager.sock");
    assertThat(SocketPaths.defaultSocket(Map.of(), -2))
        .hasToString("/tmp/orbitkv-4294967294/orbitkv/manager.sock");
  }
}
