package io.orbitkv.client;

import com.google.protobuf.ByteString;
import io.orbitkv.channel.proto.AdminRequest;
import io.orbitkv.channel.proto.ClearRequest;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.ExplainRequest;
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

  /**
   * Removes a namespace from every tier. Leases in use stay valid; what is being published stores
   * nothing.
   *
   * @param namespace digest of 32 bytes; null for everything
   * @return one JSON object that says what was removed
   * @throws OrbitKvException as {@link #status}
   */
  public static String clear(Path socket, byte[] namespace, Duration timeout) {
    ClearRequest.Builder clear = ClearRequest.newBuilder();
    if (namespace != null) {
      clear.setNamespace(ByteString.copyFrom(namespace));
    }
    return call(socket, timeout, AdminRequest.newBuilder().setClear(clear).build());
  }

  /**
   * Says where a block is, or why it is nowhere.
   *
   * @param namespace digest of 32 bytes
   * @param hash block hash
   * @return one JSON object
   * @throws OrbitKvException as {@link #status}, or when the hash has the wrong length
   */
  public static String explain(Path socket, byte[] namespace, byte[] hash, Duration timeout) {
    ExplainRequest explain =
        ExplainRequest.newBuilder()
            .setNamespace(ByteString.copyFrom(namespace))
            .setHash(ByteString.copyFrom(hash))
            .build();
    return call(socket, timeout, AdminRequest.newBuilder().setExplain(explain).build());
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
