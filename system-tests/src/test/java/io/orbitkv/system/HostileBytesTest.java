package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Hello;
import io.orbitkv.testsupport.ProcFs;
import io.orbitkv.testsupport.TestEngine;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Bytes that are no requests, at the HTTP port and at the Unix socket of a Manager, while an engine
 * beside publishes, restores and compares all the time. The Manager stays, answers the next who
 * asks well, keeps nothing, and the engine notices nothing.
 */
@Timeout(300)
class HostileBytesTest {
  private static final int WAIT_MS = 30_000;
  private static final String CRLF = "\r\n";

  /** More than the Manager takes of either kind at once. */
  private static final int MANY = 300;

  private final long seed = System.nanoTime();
  private final SplittableRandom random = new SplittableRandom(seed);
  private TestManager manager;
  private TestEngine neighbour;
  private InetSocketAddress http;
  private long sockets;

  @BeforeEach
  void start() throws IOException {
    manager = TestManager.start();
    neighbour = TestEngine.start(manager.socket(), "neighbour");
    String address = manager.status().get("http_address").asString();
    int colon = address.lastIndexOf(':');
    http = new InetSocketAddress(address.substring(0, colon), port(address.substring(colon + 1)));
    assertHealthy();
    sockets = ProcFs.openSockets(manager.pid());
    assertThat(neighbour.ask("background churn 0 32")).isEqualTo("started");
  }

  private static int port(String text) {
    return Integer.parseInt(text);
  }

  /** The neighbour saw right bytes only; nothing is left of the others. */
  @AfterEach
  void end() {
    try (TestManager _ = manager;
        TestEngine engine = neighbour) {
      assertHealthy();
      Waits.awaitHit(engine);
      engine.ask("enough");
      assertThat(engine.ask("result"))
          .as("seed=%d", seed)
          .matches("rounds=[1-9]\\d* hits=[1-9]\\d* wrong=0 unexpected=\\[]");
      assertThat(ask(get("/metrics"))).contains("orbitkv_internal_errors_total 0.0");
      manager.await("closed sockets", _ -> openSockets() <= sockets);
      manager.awaitBaseline(1);
    }
  }

  private long openSockets() {
    try {
      return ProcFs.openSockets(manager.pid());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  // ---- HTTP ----

  /** Liveness answers within the bound; connections in front may have to end first. */
  private void assertHealthy() {
    manager.await(
        "liveness",
        _ ->
            ask("GET /health HTTP/1.1" + CRLF + "Host: x" + CRLF + CRLF)
                .startsWith("HTTP/1.1 200"));
  }

  private String ask(String request) {
    return send(request.getBytes(StandardCharsets.ISO_8859_1));
  }

  /** What comes back until the end, or until nothing more comes. */
  private String send(byte[] request) {
    try (Socket socket = new Socket()) {
      socket.connect(http, WAIT_MS);
      socket.setSoTimeout(WAIT_MS);
      socket.getOutputStream().write(request);
      socket.shutdownOutput();
      return new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
    } catch (SocketException e) {
      return ""; // closed or reset: an answer as well
    } catch (IOException e) {
      throw new AssertionError("seed=" + seed + ", no end of the answer to: " + request.length, e);
    }
  }

  private static String get(String target, String... headers) {
    return "GET "
        + target
        + " HTTP/1.1"
        + CRLF
        + "Host: x"
        + CRLF
        + String.join("", headers)
        + CRLF;
  }

  @Test
  void shouldAnswerOrCloseMalformedRequests() {
    List<String> requests = new ArrayList<>();
    for (String line :
        List.of(
            "",
            " ",
            "GET",
            "GET /",
            "GET / HTTP/9.9",
            "GET  /  HTTP/1.1",
            "GET\t/health\tHTTP/1.1",
            "get /health HTTP/1.1",
            "G\0T /health HTTP/1.1",
            "GET /health HTTP/1.1 extra",
            "GET health HTTP/1.1",
            "GET mailto:x HTTP/1.1",
            "GET http:// HTTP/1.1",
            "GET http://other/health HTTP/1.1",
            "GET //health HTTP/1.1",
            "GET /../../etc/passwd HTTP/1.1",
            "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
            "GET /%zz HTTP/1.1",
            "GET /%00 HTTP/1.1",
            "GET /health%20 HTTP/1.1",
            "GET /\u00e4\u00ff HTTP/1.1",
            "GET /metrics?" + "a=b&".repeat(10_000) + " HTTP/1.1",
            "GET /" + "a".repeat(1 << 20) + " HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "TRACE / HTTP/1.1",
            "CONNECT localhost:1 HTTP/1.1",
            "PRI * HTTP/2.0",
            "X".repeat(100_000) + " / HTTP/1.1",
            "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003")) {
      requests.add(line + CRLF + "Host: x" + CRLF + CRLF);
      requests.add(line + "\n\n");
      requests.add(line);
    }
    for (String header :
        List.of(
            "Content-Length: -1",
            "Content-Length: 99999999999999999999",
            "Content-Length: 9223372036854775807",
            "Content-Length: x",
            "Content-Length: 5" + CRLF + "Content-Length: 6",
            "Transfer-Encoding: chunked" + CRLF + CRLF + "-1" + CRLF,
            "Transfer-Encoding: chunked" + CRLF + CRLF + "7fffffffffffffff" + CRLF,
            "Transfer-Encoding: chunked" + CRLF + CRLF + "zz" + CRLF,
            "Transfer-Encoding: chunked, gzip",
            "Expect: 100-continue",
            "Connection: upgrade" + CRLF + "Upgrade: h2c",
            ": no name",
            "no colon",
            "\0: \0",
            " folded",
            "X: " + "y".repeat(1 << 20),
            "X-A: b\r\n".repeat(50_000))) {
      requests.add(get("/health", header, CRLF));
      requests.add(get("/metrics", header, CRLF).replace("GET", "POST"));
    }
    for (String request : requests) {
      assertThat(ask(request)).matches("(?s)|HTTP/1.1 [12345]\\d\\d .*");
      assertThat(ask(request)).doesNotContain("root:").doesNotContain("at io.orbitkv");
    }
    assertHealthy();
  }

  @Test
  void shouldAnswerPipelinedRequestsInOrder() {
    String answer = ask(get("/health").repeat(50) + get("/nothing") + get("/health"));
    assertThat(answer.split("HTTP/1.1 200", -1)).hasSize(52);
    assertThat(answer.split("HTTP/1.1 404", -1)).hasSize(2);
  }

  @Test
  void shouldRefuseMethodsThatWouldChangeSomething() {
    for (String method : List.of("POST", "PUT", "DELETE", "PATCH", "HEAD", "BREW")) {
      for (String path : List.of("/", "/health", "/ready", "/metrics", "/instances")) {
        String body = method.equals("HEAD") ? "" : "x".repeat(1000);
        String request =
            get(path, "Content-Length: " + body.length() + CRLF).replace("GET", method) + body;
        assertThat(ask(request)).as("%s %s", method, path).startsWith("HTTP/1.1 405");
      }
    }
    assertThat(ask(get("/health", "Content-Length: 3" + CRLF) + "abc")).startsWith("HTTP/1.1 200");
  }

  @Test
  void shouldNotTakeAnEndlessBody() throws IOException {
    try (Socket socket = new Socket()) {
      socket.connect(http, WAIT_MS);
      socket.setSoTimeout(WAIT_MS);
      byte[] head =
          get("/health", "Content-Length: 1099511627776" + CRLF)
              .getBytes(StandardCharsets.US_ASCII);
      socket.getOutputStream().write(head);
      byte[] part = new byte[1 << 20];
      long sent = 0;
      try {
        while (sent < 64L << 20) {
          socket.getOutputStream().write(part);
          sent += part.length;
        }
        assertThat(sent).as("taken of a body that nobody wants").isLessThan(64L << 20);
      } catch (SocketException e) { // closed: what was to be seen
        assertThat(sent).isLessThan(64L << 20);
      }
    }
  }

  @Test
  void shouldOutlastRandomBytes() {
    byte[] right = get("/health").getBytes(StandardCharsets.US_ASCII);
    for (int round = 0; round < 500; round++) {
      byte[] bytes = round % 2 == 0 ? right.clone() : new byte[random.nextInt(1, 4096)];
      if (round % 2 == 0) {
        for (int i = random.nextInt(1, 6); i > 0; i--) {
          bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
        }
      } else {
        random.nextBytes(bytes);
      }
      send(bytes);
    }
    assertHealthy();
  }

  /** Neither a request that never ends nor connections without one keep others away for good. */
  @Test
  void shouldLiveWithManyThatSendNextToNothing() throws IOException {
    List<Socket> idle = new ArrayList<>();
    try {
      for (int i = 0; i < MANY; i++) {
        Socket socket = new Socket();
        idle.add(socket);
        socket.connect(http, WAIT_MS);
        if (i % 2 == 0) {
          trySend(socket, "GET /health HTTP/1.1\r\nX: ");
        }
      }
      assertThat(openSockets()).as("descriptors are bounded").isLessThan(sockets + 150);
      assertThat(manager.answers()).as("the Unix socket").isTrue();
      assertHealthy();
      for (Socket socket : idle) {
        assertEnds(socket);
      }
    } finally {
      for (Socket socket : idle) {
        socket.close();
      }
    }
  }

  private static void trySend(Socket socket, String text) {
    try {
      socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
    } catch (IOException e) {
      return; // refused already
    }
  }

  /** The Manager ends the connection, although the other side goes on, a byte at a time. */
  private static void assertEnds(Socket socket) throws IOException {
    socket.setSoTimeout(100);
    long deadline = System.nanoTime() + WAIT_MS * 2_000_000L;
    while (System.nanoTime() < deadline) {
      trySend(socket, "y");
      try {
        if (socket.getInputStream().read() < 0) {
          return;
        }
      } catch (SocketException e) {
        return; // reset
      } catch (SocketTimeoutException e) {
        assertThat(socket.isClosed()).isFalse(); // the Manager has not ended it yet
      }
    }
    throw new AssertionError("connection that sends next to nothing is kept");
  }

  // ---- lifecycle frames ----

  private static byte[] frame(int length, byte[] body) {
    byte[] bytes = new byte[FrameHeader.BYTES + body.length];
    new FrameHeader(Protocol.LIFECYCLE_VERSION, 0, length).writeTo(MemorySegment.ofArray(bytes));
    System.arraycopy(body, 0, bytes, FrameHeader.BYTES, body.length);
    return bytes;
  }

  private static byte[] hello(boolean adminOnly) {
    return ClientFrame.newBuilder()
        .setHello(
            Hello.newBuilder()
                .setChannelVersion(Protocol.CHANNEL_VERSION)
                .setLifecycleVersion(Protocol.LIFECYCLE_VERSION)
                .setInstanceId("fuzz")
                .setClientName("fuzz")
                .setAdminOnly(adminOnly))
        .build()
        .toByteArray();
  }

  /** Sends bytes to the Unix socket, and waits for the end. */
  private int sendToSocket(byte[] bytes, boolean endsFirst) {
    try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(manager.socket()))) {
      try {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        while (buffer.hasRemaining()) {
          channel.write(buffer);
        }
        if (endsFirst) {
          channel.shutdownOutput();
        }
        ByteArrayOutputStream answer = new ByteArrayOutputStream();
        ByteBuffer into = ByteBuffer.allocate(4096);
        while (channel.read(into) >= 0) {
          answer.write(into.array(), 0, into.position());
          into.clear();
        }
        return answer.size();
      } catch (IOException e) {
        return 0; // broken pipe: closed before all was sent
      }
    } catch (IOException e) {
      throw new AssertionError("seed=" + seed + ": the socket does not take connections", e);
    }
  }

  @Test
  void shouldCloseWhatIsNoFrame() throws IOException {
    byte[] pickle = {(byte) 0x80, 4, (byte) 0x95, 11, 0, 0, 0, 0, 0, 0, 0, (byte) 0x8c, 7};
    byte[] serialised = {(byte) 0xac, (byte) 0xed, 0, 5, 's', 'r', 0, 17, 'j', 'a', 'v', 'a'};
    byte[] hello = hello(false);
    for (byte[] bytes :
        List.of(
            new byte[0],
            new byte[1],
            new byte[4096],
            pickle,
            serialised,
            get("/health").getBytes(StandardCharsets.US_ASCII),
            frame(0, new byte[0]),
            frame(-1, hello),
            frame(Integer.MIN_VALUE, hello),
            frame(Integer.MAX_VALUE, hello),
            frame(Protocol.MAX_FRAME_BYTES, hello),
            frame(hello.length - 1, hello),
            frame(hello.length + 1, hello),
            frame(hello.length, new byte[hello.length]),
            Arrays.copyOf(frame(hello.length, hello), 7))) {
      sendToSocket(bytes, true);
    }
    assertThat(manager.answers()).isTrue();
  }

  /** Frames that begin well; a hello that is whole may even open a session, which ends at once. */
  @Test
  void shouldOutlastChangedFrames() {
    for (int round = 0; round < 1000; round++) {
      byte[] hello = hello(round % 3 == 0);
      byte[] bytes = frame(hello.length, hello);
      byte[] twice = Arrays.copyOf(bytes, 2 * bytes.length);
      System.arraycopy(bytes, 0, twice, bytes.length, bytes.length);
      for (int i = random.nextInt(1, 6); i > 0; i--) {
        twice[random.nextInt(twice.length)] = (byte) random.nextInt();
      }
      sendToSocket(Arrays.copyOf(twice, random.nextInt(1, twice.length + 1)), true);
    }
    assertThat(manager.answers()).isTrue();
  }

  @Test
  void shouldRefuseMoreConnectionsThanItTakesAndServeTheNext() throws IOException {
    List<SocketChannel> idle = new ArrayList<>();
    try {
      for (int i = 0; i < MANY; i++) {
        idle.add(SocketChannel.open(UnixDomainSocketAddress.of(manager.socket())));
      }
      assertThat(openSockets()).as("descriptors are bounded").isLessThan(sockets + 150);
    } finally {
      for (SocketChannel channel : idle) {
        channel.close();
      }
    }
    manager.await("an answer for the next", _ -> true);
  }

  /** Whoever says a byte a second does not keep a thread for ever: the frame has its bound. */
  @Test
  void shouldCloseAFrameThatNeverEnds() throws IOException {
    byte[] hello = frame(hello(true).length, hello(true));
    try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(manager.socket()))) {
      long deadline = System.nanoTime() + WAIT_MS * 1_000_000L;
      for (int i = 0; i < hello.length - 1; i++) {
        assertThat(System.nanoTime()).as("bound of a frame").isLessThan(deadline);
        try {
          channel.write(ByteBuffer.wrap(hello, i, 1));
          Thread.sleep(200); // the pace of a slow sender is what is tested
        } catch (IOException e) {
          return; // closed
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new AssertionError(e);
        }
      }
      try (InputStream in = java.nio.channels.Channels.newInputStream(channel)) {
        in.readAllBytes(); // the failure frame, then the end
      }
    }
  }
}
