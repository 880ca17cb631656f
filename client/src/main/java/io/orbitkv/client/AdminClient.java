package io.orbitkv.client;

import io.orbitkv.channel.proto.AdminRequest;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.ShutdownRequest;
import io.orbitkv.channel.proto.StatusRequest;
import java.nio.file.Path;
import java.time.Duration;

/** Calls to a Manager that need no session. */
public final class AdminClient {
  private AdminClient() {}

  /**
   * What the Manager holds.
   *
   * @return one JSON object
   * @throws OrbitKvException when no Manager listens, or it refuses or does not answer in time
   */
  public static String status(Path socket, Duration timeout) {
    return call(
        socket,
        timeout,
        AdminRequest.newBuilder().setStatus(StatusRequest.getDefaultInstance()).build());
  }

  /**
   * Asks the Manager to stop; it drains first.
   *
   * @throws OrbitKvException as {@link #status}
   */
  public static void shutdown(Path socket, Duration timeout) {
    call(
        socket,
        timeout,
        AdminRequest.newBuilder().setShutdown(ShutdownRequest.getDefaultInstance()).build());
  }

  private static String call(Path socket, Duration timeout, AdminRequest request) {
    int timeoutMs = Math.toIntExact(timeout.toMillis());
    try (Lifecycle lifecycle = Lifecycle.connect(socket, timeoutMs, "orbitkv-admin", _ -> {})) {
      ClientFrame hello =
          ClientFrame.newBuilder()
              .setHello(Lifecycle.hello("", "admin").setAdminOnly(true))
              .build();
      Lifecycle.Answer welcome = lifecycle.call(hello, timeoutMs);
      Lifecycle.require(welcome, welcome.frame().hasWelcome());
      lifecycle.expectEpoch(welcome.epoch());
      Lifecycle.Answer answer =
          lifecycle.call(ClientFrame.newBuilder().setAdmin(request).build(), timeoutMs);
      Lifecycle.require(answer, answer.frame().hasAdmin());
      return answer.frame().getAdmin().getJson();
    }
  }
}
