package io.orbitkv.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(LeakCheck.class)
@Timeout(60)
class UnixListenerTest {
  private static final int LONG_MS = 30_000;

  @TempDir private Path directory;

  private Path path() {
    return directory.resolve("s.sock");
  }

  @Test
  void shouldConnectBothWays() {
    var bytes = MemorySegment.ofArray(new byte[] {1, 2, 3});
    try (var listener = UnixListener.bind(path(), 0600);
        var client = UnixConnection.connect(path(), LONG_MS);
        var server = listener.accept(LONG_MS)) {
      client.send(bytes, 0, 3, LONG_MS);
      assertThat(server.receive(bytes, 0, 3, LONG_MS).byteCount()).isEqualTo(3);
      server.send(bytes, 0, 2, LONG_MS);
      assertThat(client.receive(bytes, 0, 3, LONG_MS).byteCount()).isEqualTo(2);
      assertThat(server.peer()).isEqualTo(Ucred.ofSelf());
    }
  }

  @Test
  void shouldGiveFileItsModeWhateverUmask() throws IOException {
    try (var _ = UnixListener.bind(path(), 0666)) {
      assertThat(Files.getPosixFilePermissions(path()))
          .isEqualTo(PosixFilePermissions.fromString("rw-rw-rw-"));
    }
    Files.delete(path());
    try (var _ = UnixListener.bind(path(), 0600)) {
      assertThat(Files.getPosixFilePermissions(path()))
          .isEqualTo(PosixFilePermissions.fromString("rw-------"));
    }
  }

  @Test
  void shouldNeverReplaceExistingFile() throws IOException {
    Files.writeString(path(), "mine");

    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> UnixListener.bind(path(), 0600))
        .withMessageContaining("path=" + path())
        .returns(Errno.EADDRINUSE, LinuxException::errno);
    assertThat(path()).hasContent("mine");
  }

  @Test
  void shouldRefuseLongPathNamingLimit() {
    var path = directory.resolve("x".repeat(108));

    assertThatIllegalArgumentException()
        .isThrownBy(() -> UnixListener.bind(path, 0600))
        .withMessageContaining("107 bytes");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> UnixConnection.connect(path, LONG_MS))
        .withMessageContaining("107 bytes");
    assertThat(path).doesNotExist();
  }

  @Test
  void shouldTakeLongestPath() {
    int room = SocketCalls.MAX_PATH_BYTES - directory.toString().length() - 1;
    var path = directory.resolve("x".repeat(room));
    try (var _ = UnixListener.bind(path, 0600);
        var client = UnixConnection.connect(path, LONG_MS)) {
      assertThat(client.peer().pid()).isEqualTo(Ids.pid());
    }
  }

  @Test
  void shouldReturnNullWhenNobodyConnects() {
    try (var listener = UnixListener.bind(path(), 0600)) {
      assertThat(listener.accept(1)).isNull();
      assertThat(listener.isOpen()).isTrue();
    }
  }

  @Test
  void shouldEndAcceptOnCloseAndKeepFile() throws Exception {
    for (int i = 0; i < 50; i++) {
      var listener = UnixListener.bind(path(), 0600);
      var acceptor = CompletableFuture.supplyAsync(() -> listener.accept(LONG_MS));

      listener.close();
      listener.close();

      assertThat(acceptor.get()).isNull();
      assertThat(listener.accept(LONG_MS)).isNull();
      assertThat(listener.isOpen()).isFalse();
      assertThat(path()).exists();
      assertThat(listener.unlink()).isTrue();
    }
  }

  @Test
  void shouldUnlinkOnlyItsOwnFile() throws IOException {
    try (var listener = UnixListener.bind(path(), 0600)) {
      Files.delete(path());
      assertThat(listener.unlink()).isFalse();
      Files.writeString(path(), "another's");
      assertThat(listener.unlink()).isFalse();
      assertThat(path()).exists();
    }
  }

  @Test
  void shouldTellAbsentFromDeadSocket() {
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> UnixConnection.connect(path(), LONG_MS))
        .returns(Errno.ENOENT, LinuxException::errno);

    UnixListener.bind(path(), 0600).close();

    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> UnixConnection.connect(path(), LONG_MS))
        .returns(Errno.ECONNREFUSED, LinuxException::errno);
  }

  @Test
  void shouldTimeOutWhenQueueIsFull() {
    var clients = new ArrayList<UnixConnection>();
    try (var _ = UnixListener.bind(path(), 0600)) {
      assertThatExceptionOfType(LinuxException.class)
          .isThrownBy(() -> {
            for (int i = 0; i < 1000; i++) {
              clients.add(UnixConnection.connect(path(), 20));
            }
          })
          .withMessageContaining("timeoutMs=20")
          .returns(Errno.EAGAIN, LinuxException::errno);
    } finally {
      clients.forEach(UnixConnection::close);
    }
  }

  @Test
  void shouldLeaveNothingWhenDirectoryIsMissing() {
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> UnixListener.bind(directory.resolve("no/s.sock"), 0600))
        .returns(Errno.ENOENT, LinuxException::errno);
  }
}
