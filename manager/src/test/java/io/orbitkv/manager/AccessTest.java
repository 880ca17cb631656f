package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.Failure;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.linux.Ids;
import io.orbitkv.linux.LinuxException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Who may connect: users that the kernel vouches for, and versions. */
@Timeout(120)
class AccessTest {
  /** A user that no file belongs to. */
  private static final int STRANGER = 54_321;

  private static final int OTHER = 54_322;

  @TempDir private Path directory;
  private Path socket;

  @BeforeEach
  void openDirectory() throws IOException {
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    socket = directory.resolve("run").resolve("manager.sock");
  }

  private Manager start(Integer... allowed) {
    Manager manager =
        Manager.start(
            ManagerConfig.builder(socket, 16L << 20)
                .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .allowedUids(Set.of(allowed))
                .build());
    manager.awaitReady(Duration.ofSeconds(30));
    return manager;
  }

  private static void requireRoot() {
    assumeTrue(Ids.uid() == 0, "only root may become another user");
  }

  private Failure refusal(int uid) throws Exception {
    return Hostile.asUser(
        uid,
        () -> {
          try (RawClient client = new RawClient(socket)) {
            ManagerFrame answer = client.receive(); // before a word of the client
            assertThat(client.receive()).isNull();
            return answer.getFailure();
          }
        });
  }

  @Test
  void shouldKeepOthersFromTheSocketOfTheManagersOwnUser() throws Exception {
    requireRoot();
    try (Manager _ = start()) {
      assertThat(mode(socket)).isEqualTo("rw-------");
      assertThat(mode(socket.getParent())).isEqualTo("rwx------");
      assertThatThrownBy(() -> Hostile.asUser(STRANGER, () -> new RawClient(socket)))
          .isInstanceOfSatisfying(
              LinuxException.class, e -> assertThat(e.getMessage()).contains("EACCES"));
    }
  }

  private static String mode(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
  }

  @Test
  void shouldServeAnotherUserOfTheListFromHelloToClose() throws Exception {
    requireRoot();
    try (Manager _ = start(0, STRANGER)) {
      assertThat(mode(socket)).isEqualTo("rw-rw-rw-");
      assertThat(mode(socket.getParent())).isEqualTo("rwx--x--x");
      Hostile.asUser(
          STRANGER,
          () -> {
            try (RawEngine engine = new RawEngine(socket, "stranger")) {
              engine.ping();
              assertThat(engine.client.sayClose().hasClosed()).isTrue();
            }
            return null;
          });
    }
  }

  @Test
  void shouldRefuseAUserWhoIsNotInTheListNamingBoth() throws Exception {
    requireRoot();
    try (Manager manager = start(0, OTHER)) {
      Failure refusal = refusal(STRANGER);
      assertThat(refusal.getCode()).isEqualTo(Status.FORBIDDEN.code());
      assertThat(refusal.getMessage())
          .contains("peer uid=" + STRANGER)
          .contains("Manager uid=0")
          .contains("allowed uids [0, " + OTHER + "]");
      assertThat(manager.counters().connectionFailures(Status.FORBIDDEN)).isEqualTo(1);
    }
  }

  @Test
  void shouldLetTheListAloneDecide() throws Exception {
    try (Manager _ = start(STRANGER);
        RawClient client = new RawClient(socket)) {
      Failure refusal = client.receive().getFailure();
      assertThat(refusal.getCode()).isEqualTo(Status.FORBIDDEN.code());
      assertThat(refusal.getMessage())
          .contains("peer uid=" + Ids.uid())
          .contains("allowed uids [" + STRANGER + "]");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, Protocol.LIFECYCLE_VERSION + 1, 0x7fff})
  void shouldRefuseFramesOfAnotherVersionNamingBoth(int version) {
    byte[] header = new byte[FrameHeader.BYTES];
    new FrameHeader(version, 0, 0).writeTo(MemorySegment.ofArray(header));
    try (Manager manager = start();
        RawClient client = new RawClient(socket)) {
      client.sendBytes(header);
      Failure refusal = client.receive().getFailure();
      assertThat(refusal.getCode()).isEqualTo(Status.VERSION_MISMATCH.code());
      assertThat(refusal.getMessage())
          .contains(Integer.toString(version))
          .contains(Integer.toString(Protocol.LIFECYCLE_VERSION));
      assertThat(refusal.getLifecycleVersion()).isEqualTo(Protocol.LIFECYCLE_VERSION);
      assertThat(client.receive()).isNull();
      assertThat(manager.counters().connectionFailures(Status.VERSION_MISMATCH)).isEqualTo(1);
    }
  }
}
