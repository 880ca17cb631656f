package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(LeakCheck.class)
@Timeout(60)
class UnixConnectionTest {
  private static final int LONG_MS = 30_000;
  private static final int F_GETFD = 1;
  private static final int FD_CLOEXEC = 1;

  private final MemorySegment buffer = MemorySegment.ofArray(new byte[100_000]);
  private UnixConnection left;
  private UnixConnection right;

  @BeforeEach
  void connect() {
    int[] pair = new int[2];
    assertThat(SocketCalls.socketpair(pair)).isZero();
    left = new UnixConnection(Fd.own(pair[0]));
    right = new UnixConnection(Fd.own(pair[1]), 2);
  }

  @AfterEach
  void disconnect() {
    left.close();
    right.close();
  }

  private static MemorySegment text(String text) {
    return MemorySegment.ofArray(text.getBytes(StandardCharsets.US_ASCII));
  }

  private static List<EventFd> events(int count) {
    return Stream.generate(EventFd::create).limit(count).toList();
  }

  private static int[] numbers(List<EventFd> events) {
    return events.stream().mapToInt(EventFd::fd).toArray();
  }

  @Test
  void shouldCarryMoreBytesThanBuffersHold() throws Exception {
    long seed = System.nanoTime();
    byte[] sent = new byte[3_000_001];
    new Random(seed).nextBytes(sent);
    var sender =
        CompletableFuture.runAsync(
            () -> left.send(MemorySegment.ofArray(sent), 0, sent.length, LONG_MS));

    byte[] received = new byte[sent.length];
    int count = 0;
    while (count < received.length) {
      var target = MemorySegment.ofArray(received);
      int part = right.receive(target, count, received.length - count, LONG_MS).byteCount();
      assertThat(part).isPositive();
      count += part;
    }

    sender.get();
    assertThat(Arrays.equals(received, sent)).as("seed=%d", seed).isTrue();
  }

  @Test
  void shouldSendAndReceiveOffHeapSpan() {
    try (var arena = Arena.ofConfined()) {
      var bytes = arena.allocateFrom("0123456789");
      var target = arena.allocate(16);

      left.send(bytes, 3, 4, LONG_MS);
      var received = right.receive(target, 5, 8, LONG_MS);

      assertThat(received.byteCount()).isEqualTo(4);
      assertThat(target.getString(5)).isEqualTo("3456");
    }
  }

  @Test
  void shouldCarryDescriptorsWithFirstByte() {
    var events = events(UnixConnection.MAX_FDS);
    right.send(text("abc"), 0, 3, numbers(events), LONG_MS);

    var first = left.receive(buffer, 0, 1, LONG_MS);
    var rest = left.receive(buffer, 1, 10, LONG_MS);

    assertThat(first.byteCount()).isEqualTo(1);
    assertThat(first.fds()).hasSize(UnixConnection.MAX_FDS);
    assertThat(rest.byteCount()).isEqualTo(2);
    assertThat(rest.fds()).isEmpty();
    for (int i = 0; i < events.size(); i++) {
      int raw = first.fds().get(i).value();
      assertThat(FileCalls.fcntl(raw, F_GETFD, 0) & FD_CLOEXEC).isEqualTo(FD_CLOEXEC);
      try (var copy = EventFd.adopt(first.fds().get(i))) {
        copy.signal();
        assertThat(events.get(i).drain()).isTrue();
      }
      events.get(i).close();
    }
  }

  @Test
  void shouldCloseAllWhenMoreDescriptorsCameThanFit() {
    var events = events(20);
    left.send(text("x"), 0, 1, numbers(events), LONG_MS);
    events.forEach(EventFd::close);

    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> right.receive(buffer, 0, 1, LONG_MS))
        .withMessageContaining("MSG_CTRUNC")
        .returns(Errno.EMSGSIZE, LinuxException::errno); // and LeakCheck finds none left
  }

  @Test
  void shouldCloseDescriptorsWhenBufferIsGone() {
    var mapping = Mapping.anonymous(8, false);
    mapping.close();
    var target = mapping.segment();
    var event = EventFd.create();
    left.send(text("x"), 0, 1, new int[] {event.fd()}, LONG_MS);
    event.close();

    assertThatIllegalStateException().isThrownBy(() -> right.receive(target, 0, 1, LONG_MS));
  }

  @Test
  void shouldRefuseDescriptorsThatCannotGo() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> left.send(text("x"), 0, 1, new int[65], LONG_MS))
        .withMessageContaining("count=65, max=64");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> left.send(text("x"), 0, 0, new int[1], LONG_MS));
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> left.send(text("x"), 0, 1, new int[] {-1}, LONG_MS))
        .returns(Errno.EBADF, LinuxException::errno);
  }

  @Test
  void shouldPassCredentialsWhenEnabled() {
    right.enablePassCredentials();
    left.send(text("x"), 0, 1, LONG_MS);

    assertThat(right.receive(buffer, 0, 1, LONG_MS).credentials()).isEqualTo(Ucred.ofSelf());
  }

  @Test
  void shouldPassCredentialsThatWereSentBeforeEnabling() {
    var event = EventFd.create();
    left.sendWithCredentials(text("x"), 0, 1, new int[] {event.fd()}, LONG_MS);
    right.enablePassCredentials();

    var received = right.receive(buffer, 0, 1, LONG_MS);

    assertThat(received.credentials()).isEqualTo(Ucred.ofSelf());
    assertThat(received.fds()).hasSize(1);
    received.closeFds();
    event.close();
  }

  @Test
  void shouldHaveNoCredentialsUnlessEnabled() {
    left.send(text("x"), 0, 1, LONG_MS);

    assertThat(right.receive(buffer, 0, 1, LONG_MS).credentials()).isNull();
  }

  @Test
  void shouldTellPeer() {
    assertThat(left.peer()).isEqualTo(new Ucred(Ids.pid(), Ids.uid(), Ids.gid()));
  }

  @Test
  void shouldTellPeerByDescriptor() {
    var fd = left.peerPidFd();
    assumeTrue(fd != null, "needs Linux 6.5");
    try (var peer = PidFd.adopt(fd)) {
      assertThat(peer.hasExited()).isFalse();
    }
  }

  @Test
  void shouldTimeOutWithoutBytes() {
    assertThat(left.receive(buffer, 0, 1, 1).byteCount()).isEqualTo(Received.TIMED_OUT);
    assertThat(left.receive(buffer, 0, 1, 0)).isSameAs(left.receive(buffer, 0, 1, 0));
  }

  @Test
  void shouldTimeOutWhenPeerDoesNotRead() {
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> {
          for (int i = 0; i < 10_000; i++) {
            left.send(buffer, 0, buffer.byteSize(), 1);
          }
        })
        .withMessageContaining("length=100000")
        .returns(Errno.ETIMEDOUT, LinuxException::errno);
  }

  @Test
  void shouldRefuseWaitWithoutBound() {
    assertThatIllegalArgumentException().isThrownBy(() -> left.receive(buffer, 0, 1, -1));
    assertThatIllegalArgumentException().isThrownBy(() -> left.send(buffer, 0, 1, -1));
  }

  @Test
  void shouldRefuseSpanOutsideBuffer() {
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> left.send(buffer, 1, buffer.byteSize(), LONG_MS));
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> left.receive(buffer, 1, buffer.byteSize(), LONG_MS));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> left.receive(buffer.asReadOnly(), 0, 1, LONG_MS));
    assertThatIllegalArgumentException().isThrownBy(() -> left.receive(buffer, 0, 0, LONG_MS));
  }

  @Test
  void shouldReceiveRestThenEndWhenPeerCloses() {
    left.send(text("last"), 0, 4, LONG_MS);
    left.close();

    assertThat(right.receive(buffer, 0, 10, LONG_MS).byteCount()).isEqualTo(4);
    assertThat(buffer.get(JAVA_BYTE, 0)).isEqualTo((byte) 'l');
    assertThat(right.receive(buffer, 0, 10, LONG_MS).byteCount()).isEqualTo(Received.END_OF_STREAM);
    assertThatExceptionOfType(LinuxException.class)
        .isThrownBy(() -> right.send(buffer, 0, 1, LONG_MS))
        .returns(Errno.EPIPE, LinuxException::errno);
  }

  @Test
  void shouldEndWaitOfReaderOnClose() throws Exception {
    for (int i = 0; i < 100; i++) {
      var reader = CompletableFuture.supplyAsync(() -> receiveUntilClosed(left));

      left.close();

      assertThat(reader.get()).isIn(Received.END_OF_STREAM, -2);
      disconnect();
      connect();
    }
  }

  /** Result of one receive; -2 when the connection was closed before it. */
  private static int receiveUntilClosed(UnixConnection connection) {
    try {
      return connection.receive(MemorySegment.ofArray(new byte[1]), 0, 1, LONG_MS).byteCount();
    } catch (IllegalStateException e) {
      return -2;
    }
  }

  @Test
  void shouldRefuseUseAfterClose() {
    left.close();
    left.close();
    left.shutdown();

    assertThatIllegalStateException().isThrownBy(() -> left.send(buffer, 0, 1, LONG_MS));
    assertThatIllegalStateException().isThrownBy(() -> left.receive(buffer, 0, 1, LONG_MS));
    assertThatIllegalStateException().isThrownBy(left::peer);
    assertThatIllegalStateException().isThrownBy(left::fd);
  }
}
