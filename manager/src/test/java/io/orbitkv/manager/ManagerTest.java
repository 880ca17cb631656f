package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.AdminRequest;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.ConfirmSession;
import io.orbitkv.channel.proto.HealthRequest;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.ShutdownRequest;
import io.orbitkv.channel.proto.StatusRequest;
import io.orbitkv.channel.proto.Unregister;
import io.orbitkv.channel.proto.Welcome;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.LockFile;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import io.orbitkv.linux.UnixListener;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Timeout(60)
class ManagerTest {
  private static final long POOL_BYTES = 16L << 20;
  private static final Duration BOUND = Duration.ofSeconds(20);

  @TempDir Path directory;
  private Path socket;

  @BeforeEach
  void setUp() {
    socket = directory.resolve("run").resolve("manager.sock");
  }

  private ManagerConfig.Builder config() {
    return ManagerConfig.builder(socket, POOL_BYTES)
        .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
        .drainTimeout(Duration.ofSeconds(2));
  }

  private Manager startReady() {
    Manager manager = Manager.start(config().build());
    manager.awaitReady(BOUND);
    return manager;
  }

  private static JsonNode status(Manager manager) {
    return JsonMapper.shared().readTree(manager.statusJson());
  }

  private static void eventually(BooleanSupplier condition) {
    long deadlineNs = System.nanoTime() + BOUND.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("bound of the wait").isLessThan(deadlineNs);
      Thread.onSpinWait();
    }
  }

  private static long openFds() {
    try (Stream<Path> fds = Files.list(Path.of("/proc/self/fd"))) {
      return fds.filter(ManagerTest::isOurs).count();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean isOurs(Path fd) {
    try {
      String target = Files.readSymbolicLink(fd).toString();
      return target.contains("orbitkv")
          || target.contains("eventfd")
          || target.contains("pidfd")
          || target.contains("manager.sock");
    } catch (IOException e) {
      return false; // closed since
    }
  }

  private static long maps() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains("/memfd:orbitkv")).count();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static HttpResponse<String> http(Manager manager, String method, String path)
      throws IOException, InterruptedException {
    try (HttpClient client = HttpClient.newHttpClient()) {
      URI uri = URI.create("http://127.0.0.1:" + manager.httpAddress().getPort() + path);
      return client.send(
          HttpRequest.newBuilder(uri)
              .method(method, HttpRequest.BodyPublishers.noBody())
              .timeout(BOUND)
              .build(),
          HttpResponse.BodyHandlers.ofString());
    }
  }

  @Test
  void shouldServeOneSessionFromHelloToClose() {
    try (Manager manager = startReady();
        RawClient client = new RawClient(socket)) {
      Welcome welcome = client.handshake();
      assertThat(client.fds).hasSize(5);
      Memfd.checkSealed(client.fds.get(0), ChannelDescriptor.REGION_BYTES);
      Memfd.checkSealed(client.fds.get(1), GrantTable.REGION_BYTES);
      assertThat(welcome.getManagerPid()).isEqualTo((int) ProcessHandle.current().pid());

      ManagerFrame confirmed = client.confirm();
      assertThat(confirmed.getSessionConfirmed().getMayPublish()).isTrue();
      assertThat(confirmed.getSessionConfirmed().getNotice()).isEmpty();

      ManagerFrame registered = client.register(4096, false);
      assertThat(registered.hasRegistered()).as("%s", registered).isTrue();
      assertThat(client.fds).hasSize(6);
      assertThat(registered.getRegistered().getArenaBytesList()).containsExactly(POOL_BYTES);
      int id = registered.getRegistered().getRegistrationId();
      int generation = registered.getRegistered().getGeneration();
      assertThat(client.confirmMappings(id, generation).hasRegistrationReady()).isTrue();

      JsonNode during = status(manager);
      assertThat(during.get("sessions").asInt()).isEqualTo(1);
      JsonNode session = during.get("session_list").get(0);
      assertThat(session.get("instance").asString()).isEqualTo("engine");
      JsonNode state = session.get("states").get(0);
      assertThat(state.get("namespace").asString()).hasSize(64);
      assertThat(state.get("registered_bytes").asLong()).isEqualTo(8 * 4096);
      assertThat(state.get("adapter").asString()).isEmpty();
      assertThat(state.get("block_tokens").asString()).isNotEmpty();
      ManagerFrame gone =
          client.ask(
              ClientFrame.newBuilder()
                  .setUnregister(
                      Unregister.newBuilder().setRegistrationId(id).setGeneration(generation))
                  .build());
      assertThat(gone.hasUnregistered()).isTrue();
      assertThat(client.sayClose().hasClosed()).isTrue();
      eventually(() -> status(manager).get("session_list").isEmpty());
    }
  }

  @Test
  void shouldTellTheSessionsOfOneInstanceApart() {
    try (Manager manager = startReady();
        RawClient scheduler = new RawClient(socket);
        RawClient worker = new RawClient(socket)) {
      scheduler.handshake("engine", "vllm-scheduler");
      scheduler.confirm();
      worker.handshake("engine", "vllm-\u001b[2Jworker");
      worker.confirm();
      JsonNode sessions = status(manager).get("session_list");
      assertThat(sessions.get(0).get("instance")).isEqualTo(sessions.get(1).get("instance"));
      assertThat(sessions.get(0).get("client").asString()).isEqualTo("vllm-scheduler");
      assertThat(sessions.get(1).get("client").asString()).isEqualTo("vllm-?[2Jworker");
    }
  }

  @Test
  void shouldShowWhatASessionPublishedAndRestoredAndTheHitRate() {
    try (Manager manager = startReady();
        RawEngine engine = new RawEngine(socket, "engine")) {
      assertThat(status(manager).get("hit_rate").isNull()).isTrue();
      for (int key = 1; key <= 2; key++) {
        long publish = engine.reserve(key);
        engine.write(
            ChannelDescriptor.PUBLISH_REQUESTS,
            engine.command(Opcode.PUBLISH, publish),
            engine.publishData(key));
        engine.wake();
        engine.finish(key);
      }
      long lease = engine.lookup(1, 7, 8);
      engine.write(
          ChannelDescriptor.QUERY_REQUESTS,
          engine.command(Opcode.RESTORE, engine.reserve(3, GrantTable.RESTORE)),
          engine.restoreData(lease));
      engine.wake();
      engine.finish(3);
      eventually(() -> status(manager).get("restores_total").asInt() == 1);
      JsonNode status = status(manager);
      assertThat(status.get("hit_rate").asDouble()).isEqualTo(0.3333);
      JsonNode session = status.get("session_list").get(0);
      assertThat(session.get("hit_rate").asDouble()).isEqualTo(0.3333);
      assertThat(session.get("hit_blocks_total").asLong()).isEqualTo(1);
      assertThat(session.get("lookup_blocks_total").asLong()).isEqualTo(3);
      assertThat(session.get("restored_blocks_total").asLong()).isEqualTo(1);
      assertThat(session.get("restored_bytes_total").asLong()).isEqualTo(4096);
      assertThat(session.get("published_blocks_total").asLong()).isEqualTo(2);
      assertThat(session.get("published_bytes_total").asLong()).isEqualTo(2 * 4096);
    }
  }

  @Test
  void shouldAnswerCommandsOfTheRing() {
    try (Manager _ = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      try (Mapping channel = mapChannel(client);
          EventFd wake = EventFd.adopt(client.fds.get(2))) {
        MemorySegment region = channel.segment();
        var requests = new CommandRing.Producer(region, ChannelDescriptor.QUERY_REQUESTS);
        var replies = new CommandRing.Consumer(region, ChannelDescriptor.QUERY_REPLIES);
        Command command = new Command();
        for (int i = 0; i < 1000; i++) {
          requests.tryWrite(command.set(Opcode.PING, 0, i, client.epochLow, 7, i));
          wakeIfAsleep(region, wake);
          eventually(() -> replies.tryRead(command));
          assertThat(command.requestId).isEqualTo(i);
          assertThat(command.scalar1).isEqualTo(i);
        }
      }
    }
  }

  private static Mapping mapChannel(RawClient client) {
    return Mapping.map(
        client.fds.get(0), ChannelDescriptor.REGION_BYTES, Mapping.Access.READ_WRITE, false);
  }

  private static void wakeIfAsleep(MemorySegment region, EventFd wake) {
    java.lang.invoke.VarHandle.fullFence();
    if (Memory.getIntVolatile(region, ChannelDescriptor.MANAGER_SLEEPS_OFFSET) != 0) {
      wake.signal();
    }
  }

  @Test
  void shouldLeaveCommandsInPlaceWhileTheReplyRingIsFull() {
    int count = ChannelDescriptor.RING_CAPACITY + 100;
    try (Manager _ = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      try (Mapping channel = mapChannel(client)) {
        var requests =
            new CommandRing.Producer(channel.segment(), ChannelDescriptor.QUERY_REQUESTS);
        var replies = new CommandRing.Consumer(channel.segment(), ChannelDescriptor.QUERY_REPLIES);
        Command command = new Command();
        for (int i = 0; i < count; i++) {
          command.set(Opcode.PING, 0, i, client.epochLow, 0, 0);
          eventually(() -> requests.tryWrite(command));
        }
        for (int i = 0; i < count; i++) {
          eventually(() -> replies.tryRead(command));
          assertThat(command.requestId).isEqualTo(i);
        }
      }
    }
  }

  @Test
  void shouldEndOnlyTheSessionWhoseCommandNamesForeignBytes() {
    try (Manager manager = startReady();
        RawClient bad = new RawClient(socket);
        RawClient good = new RawClient(socket)) {
      bad.handshake();
      bad.confirm();
      good.handshake();
      good.confirm();
      try (Mapping channel = mapChannel(bad)) {
        var requests =
            new CommandRing.Producer(channel.segment(), ChannelDescriptor.QUERY_REQUESTS);
        Command command = new Command().set(Opcode.LOOKUP, 0, 1, bad.epochLow, 0, 0);
        requests.tryWrite(command.data(1 << 20, 4096, 12345));
        assertThat(bad.receive()).isNull();
        assertThat(Memory.getIntVolatile(channel.segment(), ChannelDescriptor.SESSION_STATE_OFFSET))
            .isEqualTo(ChannelDescriptor.CLOSED);
      }
      assertThat(manager.counters().sessionsEnded(SessionEnd.VIOLATION)).isEqualTo(1);
      assertThat(good.register(4096, false).hasRegistered()).isTrue();
    }
  }

  @Test
  void shouldRefuseAnotherVersionNamingBoth() {
    try (Manager manager = startReady();
        RawClient client = new RawClient(socket)) {
      ManagerFrame answer = client.ask(RawClient.hello(99, false));
      assertThat(answer.getFailure().getCode()).isEqualTo(Status.VERSION_MISMATCH.code());
      assertThat(answer.getFailure().getMessage())
          .contains("client channel=99")
          .contains("Manager channel=" + Protocol.CHANNEL_VERSION);
      assertThat(answer.getFailure().getChannelVersion()).isEqualTo(Protocol.CHANNEL_VERSION);
      assertThat(client.receive()).isNull();
      assertThat(manager.counters().connectionFailures(Status.VERSION_MISMATCH)).isEqualTo(1);
    }
  }

  @Test
  void shouldCloseConnectionsThatSendGarbage() {
    long seed = System.nanoTime();
    byte[] random = new byte[4096];
    new Random(seed).nextBytes(random);
    random[0] = 1; // never our magic
    byte[] pickle = new byte[64];
    pickle[0] = (byte) 0x80;
    pickle[1] = 4;
    pickle[2] = (byte) 0x95;
    try (Manager manager = startReady()) {
      for (byte[] bytes : new byte[][] {random, pickle}) {
        try (RawClient client = new RawClient(socket)) {
          client.sendBytes(bytes);
          assertThat(client.receive().getFailure().getCode())
              .as("seed=%d", seed)
              .isEqualTo(Status.INVALID.code());
          assertEnds(client);
        }
      }
      assertThat(manager.counters().connectionFailures(Status.INVALID)).isEqualTo(2);
      assertThat(status(manager).get("sessions").asInt()).isZero();
    }
  }

  private static void assertEnds(RawClient client) {
    try {
      assertThat(client.receive()).isNull();
    } catch (LinuxException e) { // bytes that the Manager did not read reset the connection
      assertThat(e.call()).isEqualTo("recvmsg");
    }
  }

  @Test
  void shouldRefuseAnOversizedFrameByItsLength() {
    byte[] header = new byte[FrameHeader.BYTES];
    new FrameHeader(Protocol.LIFECYCLE_VERSION, 0, Protocol.MAX_FRAME_BYTES + 1)
        .writeTo(MemorySegment.ofArray(header));
    try (Manager manager = startReady();
        RawClient client = new RawClient(socket)) {
      client.sendBytes(header);
      ManagerFrame answer = client.receive();
      assertThat(answer.getFailure().getCode()).isEqualTo(Status.LIMIT.code());
      assertThat(answer.getFailure().getMessage()).contains("" + Protocol.MAX_FRAME_BYTES);
      assertThat(client.receive()).isNull();
      assertThat(manager.counters().connectionFailures(Status.LIMIT)).isEqualTo(1);
    }
  }

  @Test
  void shouldKeepTheConnectionAfterAnApplicationError() {
    try (Manager _ = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      ManagerFrame refused = client.register(64L << 20, false);
      assertThat(refused.getFailure().getCode()).isEqualTo(Status.LIMIT.code());
      assertThat(refused.getFailure().getMessage())
          .contains("67108864")
          .contains("limit=" + (2 << 20));
      assertThat(client.register(4096, false).hasRegistered()).isTrue();
    }
  }

  @Test
  void shouldGiveRestoreOnlySessionsReadOnlyArenas() {
    try (Manager _ = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      assertThat(client.register(4096, true).hasRegistered()).isTrue();
      Fd arena = client.fds.get(5);
      assertThatThrownBy(
              () -> Mapping.map(arena, POOL_BYTES, Mapping.Access.READ_WRITE, false).close())
          .isInstanceOf(LinuxException.class);
      Mapping.map(arena, POOL_BYTES, Mapping.Access.READ_ONLY, false).close();
    }
  }

  @Test
  void shouldSettleTheSessionOfALostSocket() {
    try (Manager manager = startReady()) {
      try (RawClient client = new RawClient(socket)) {
        client.handshake();
        client.confirm();
        client.register(4096, false);
      }
      eventually(() -> status(manager).get("session_list").isEmpty());
      assertThat(status(manager).get("registrations").asInt()).isZero();
      eventually(() -> maps() == 1); // the arena alone
    }
  }

  @Test
  void shouldAnswerAdminRequestsWithoutASession() throws Exception {
    Manager manager = startReady();
    try (RawClient client = new RawClient(socket)) {
      client.adminHandshake();
      assertThat(client.fds).isEmpty();
      ManagerFrame health =
          client.ask(
              ClientFrame.newBuilder().setHealth(HealthRequest.getDefaultInstance()).build());
      assertThat(health.getHealth().getReady()).isTrue();
      assertThat(health.getHealth().getPercent()).isEqualTo(100);
      JsonNode json = JsonMapper.shared().readTree(admin(client, statusRequest()));
      assertThat(json.get("pool_capacity_bytes").asLong()).isEqualTo(POOL_BYTES);
      assertThat(json.get("state").asString()).isEqualTo("ready");
      assertThat(json.get("socket").asString()).isEqualTo(socket.toString());
      assertThat(json.get("misses_total").has("never_stored")).isTrue();
      AdminRequest shutdown =
          AdminRequest.newBuilder().setShutdown(ShutdownRequest.getDefaultInstance()).build();
      assertThat(admin(client, shutdown)).contains("stopping");
      manager.awaitTermination();
      assertThat(socket).doesNotExist();
    } finally {
      manager.close();
    }
  }

  private static AdminRequest statusRequest() {
    return AdminRequest.newBuilder().setStatus(StatusRequest.getDefaultInstance()).build();
  }

  private static String admin(RawClient client, AdminRequest request) {
    return client.ask(ClientFrame.newBuilder().setAdmin(request).build()).getAdmin().getJson();
  }

  @Test
  void shouldReplaceADeadSocketOnly() throws IOException {
    Files.createDirectory(socket.getParent());
    UnixListener dead = UnixListener.bind(socket, 0600);
    dead.close();
    assertThat(socket).exists();
    try (Manager _ = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)))
          .isEqualTo("rw-------");
    }
  }

  @Test
  void shouldRefuseALiveSocketNamingItsPid() throws IOException {
    Files.createDirectory(socket.getParent());
    try (UnixListener listener = UnixListener.bind(socket, 0600)) {
      assertThatThrownBy(() -> Manager.start(config().build()))
          .isInstanceOf(ManagerException.class)
          .hasMessageContaining("in use")
          .hasMessageContaining("pid=" + ProcessHandle.current().pid());
      assertThat(socket).exists();
      listener.unlink();
    }
    assertThat(socket.getParent()).isEmptyDirectory();
  }

  @Test
  void shouldRefuseAFileThatIsNoSocket() throws IOException {
    Files.createDirectory(socket.getParent());
    Files.writeString(socket, "mine");
    assertThatThrownBy(() -> Manager.start(config().build()))
        .isInstanceOf(ManagerException.class)
        .hasMessageContaining("no socket");
    assertThat(socket).hasContent("mine");
  }

  @Test
  void shouldRefuseASecondManagerNamingTheFirst() {
    try (Manager _ = startReady()) {
      assertThatThrownBy(() -> Manager.start(config().build()))
          .isInstanceOf(ManagerException.class)
          .hasMessageContaining("another Manager")
          .hasMessageContaining("pid=" + ProcessHandle.current().pid());
      try (RawClient client = new RawClient(socket)) {
        assertThat(client.handshake().getManagerPid()).isPositive();
      }
      Path lock = socket.resolveSibling("manager.sock.lock");
      assertThat(LockFile.holderPid(lock)).isEqualTo((int) ProcessHandle.current().pid());
    }
  }

  @Test
  void shouldAnswerHttpReadOnly() throws Exception {
    try (Manager manager = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      assertThat(http(manager, "GET", "/health").body()).isEqualTo("ok");
      HttpResponse<String> ready = http(manager, "GET", "/ready");
      assertThat(ready.statusCode()).isEqualTo(200);
      assertThat(ready.body()).contains("\"percent\":100");
      assertThat(http(manager, "GET", "/metrics").body())
          .contains("orbitkv_pool_capacity_bytes 1.6777216E7")
          .contains("orbitkv_cache_block_misses_total{reason=\"never_stored\"} 0.0")
          .contains("orbitkv_cache_block_hits_total 0.0");
      eventually(() -> body(manager, "/instances").contains("\"instance\":\"engine\""));
      assertThat(http(manager, "GET", "/environment").statusCode()).isEqualTo(404);
      assertThat(http(manager, "GET", "/health/x").statusCode()).isEqualTo(404);
      assertThat(http(manager, "POST", "/instances").statusCode()).isEqualTo(405);
      assertThat(http(manager, "DELETE", "/metrics").statusCode()).isEqualTo(405);
    }
  }

  private static String body(Manager manager, String path) {
    try {
      return http(manager, "GET", path).body();
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void shouldLeaveNothingBehindAfterAStop() {
    long fds = openFds();
    Manager manager = startReady();
    try (RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      client.register(4096, false);
      assertThat(manager.stop(Duration.ofSeconds(2))).isTrue();
      assertThat(client.receive()).isNull();
    }
    assertThat(manager.stop(Duration.ofSeconds(2))).isTrue();
    assertThat(socket.getParent()).doesNotExist();
    assertThat(maps()).isZero();
    assertThat(openFds()).isEqualTo(fds);
  }

  @Test
  void shouldLeaveNothingBehindWhenThePortIsTaken() throws IOException {
    long fds = openFds();
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), taken.getLocalPort());
      assertThatThrownBy(() -> Manager.start(config().httpAddr(address).build()))
          .isInstanceOf(ManagerException.class)
          .hasMessageContaining("127.0.0.1:" + taken.getLocalPort());
    }
    assertThat(socket.getParent()).doesNotExist();
    assertThat(maps()).isZero();
    assertThat(openFds()).isEqualTo(fds);
  }

  @Test
  void shouldRefuseAPoolThatDoesNotFit() {
    assertThatThrownBy(() ->
            Manager.start(
                ManagerConfig.builder(socket, 1L << 50)
                    .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                    .build()))
        .isInstanceOf(ManagerException.class)
        .hasMessageContaining("wanted bytes=" + (1L << 50))
        .hasMessageContaining("free bytes=");
    assertThat(socket.getParent()).doesNotExist();
  }

  @Test
  void shouldRefuseRegistrationsUntilThePoolIsPresent() {
    ManagerConfig large =
        ManagerConfig.builder(socket, 1L << 30)
            .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
            .poolShards(2)
            .build();
    try (Manager manager = Manager.start(large);
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      ManagerFrame first = client.register(4096, false);
      if (first.hasFailure()) { // else the machine was faster than the handshake
        assertThat(first.getFailure().getCode()).isEqualTo(Status.NOT_READY.code());
        assertThat(first.getFailure().getMessage()).contains("percent=");
        manager.awaitReady(BOUND);
        assertThat(client.register(4096, false).getRegistered().getArenaBytesList())
            .containsExactly(512L << 20, 512L << 20);
      }
      assertThat(manager.startupSummary()).contains("2 arenas").contains(socket.toString());
    }
  }

  @Test
  void shouldStopWhileThePoolIsBeingPrepared() throws Exception {
    ManagerConfig large =
        ManagerConfig.builder(socket, 1L << 30)
            .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
            .build();
    Manager manager = Manager.start(large);
    CompletableFuture<Boolean> ready =
        CompletableFuture.supplyAsync(() -> {
          manager.requestStop();
          return manager.awaitReady(BOUND);
        });
    assertThat(ready.get(BOUND.toSeconds(), TimeUnit.SECONDS))
        .as("no failure, and not ready unless the machine was faster")
        .isNotNull();
    manager.awaitTermination();
    assertThat(manager.awaitReady(BOUND)).isFalse();
    assertThat(maps()).isZero();
  }

  @Test
  void shouldReleaseAllWhenTheSocketCanNotBeDeleted() throws Exception {
    long fds = openFds();
    Manager manager = startReady();
    Files.delete(socket);
    Files.move(socket.getParent(), directory.resolve("gone"));
    Files.writeString(socket.getParent(), "a file where the directory was");

    assertThat(manager.stop(Duration.ofSeconds(2))).isTrue();
    manager.awaitTermination();

    assertThat(maps()).isZero();
    assertThat(openFds()).isEqualTo(fds);
  }

  @Test
  void shouldServeTheNextWhenAConnectionGetsNoThread() {
    Path other = directory.resolve("other.sock");
    AtomicInteger asked = new AtomicInteger();
    ThreadFactory threads =
        task ->
            new Thread(task) {
              @Override
              public void start() {
                if (asked.getAndIncrement() < 70) { // more than connections without a session
                  throw new OutOfMemoryError("unable to create native thread");
                }
                super.start();
              }
            };
    try (Manager manager = startReady();
        UnixListener listener = UnixListener.bind(other, 0600);
        BootstrapServer server = new BootstrapServer(manager, listener, threads)) {
      server.start();
      for (int i = 0; i < 70; i++) {
        try (RawClient refused = new RawClient(other)) {
          assertThat(refused.receive()).isNull();
        }
      }
      try (RawClient client = new RawClient(other)) {
        client.handshake();
        assertThat(client.confirm().hasSessionConfirmed()).isTrue();
      }
      assertThat(manager.counters().internalErrors()).isEqualTo(70);
    }
  }

  @Test
  void shouldKeepNothingOfConnectionsThatTheControlThreadAnswersTooLate() {
    CompletableFuture<Void> gate = new CompletableFuture<>();
    try (Manager manager = startReady();
        RawClient opening = new RawClient(socket);
        RawClient reserving = new RawClient(socket)) {
      assertThat(opening.handshake().getSessionSlot()).isZero();
      CompletableFuture<Void> stall = manager.control().call(_ -> gate.join());
      opening.send(
          ClientFrame.newBuilder()
              .setConfirmSession(ConfirmSession.newBuilder().setSessionToken(opening.token))
              .build());
      reserving.send(RawClient.hello(Protocol.CHANNEL_VERSION, false));
      assertThat(opening.receive().getFailure().getCode()).isEqualTo(Status.INTERNAL.code());
      assertThat(reserving.receive().getFailure().getCode()).isEqualTo(Status.INTERNAL.code());
      gate.complete(null);
      assertThat(stall).succeedsWithin(BOUND);
      long errors = manager.counters().internalErrors();
      try (RawClient first = new RawClient(socket);
          RawClient second = new RawClient(socket)) {
        assertThat(first.handshake().getSessionSlot()).isZero();
        assertThat(second.handshake("other").getSessionSlot()).isEqualTo(1);
        assertThat(first.confirm().hasSessionConfirmed()).isTrue();
        assertThat(second.confirm().hasSessionConfirmed()).isTrue();
        assertThat(status(manager).get("session_list").size()).isEqualTo(2);
      }
      assertThat(manager.counters().internalErrors()).isEqualTo(errors);
    }
  }

  @Test
  @Timeout(120)
  void shouldBoundConnectionsWithoutASession() {
    int tries = 1;
    while (!boundsConnections()) {
      assertThat(tries++).as("tries to make the connections in time").isLessThan(5);
    }
  }

  /** False when it took so long that the first connections may have ended before the last came. */
  private boolean boundsConnections() {
    int most = BootstrapServer.maxConnections() - Protocol.MAX_SESSIONS;
    List<RawClient> silent = new ArrayList<>();
    try (Manager manager = startReady()) {
      long boundNs = TimeUnit.MILLISECONDS.toNanos(SessionConnection.FIRST_FRAME_MS) * 4 / 5;
      long beganNs = System.nanoTime();
      for (int i = 0; i < most; i++) {
        silent.add(new RawClient(socket));
      }
      try (RawClient refused = new RawClient(socket)) {
        boolean ended = refused.receive() == null;
        if (System.nanoTime() - beganNs > boundNs) {
          return false;
        }
        assertThat(ended).isTrue();
      }
      assertThat(manager.counters().connectionFailures(Status.LIMIT)).isEqualTo(1);
      silent.removeLast().close();
      eventually(() -> isServed());
      return true;
    } finally {
      silent.forEach(RawClient::close);
    }
  }

  private boolean isServed() {
    try (RawClient client = new RawClient(socket)) {
      client.send(RawClient.hello(Protocol.CHANNEL_VERSION, false));
      return client.receive() != null;
    } catch (LinuxException e) { // refused before the frame was read
      return false;
    }
  }

  @Test
  void shouldNotServeAFrameThatIsCutShort() {
    try (Manager manager = startReady()) {
      byte[] body =
          ClientFrame.newBuilder()
              .setAdmin(AdminRequest.newBuilder().setShutdown(ShutdownRequest.getDefaultInstance()))
              .build()
              .toByteArray();
      for (int cut = 1; cut <= 2; cut++) {
        try (RawClient client = new RawClient(socket)) {
          client.adminHandshake();
          // a longer frame, so that what comes would be a whole message
          byte[] bytes = new byte[FrameHeader.BYTES + body.length];
          new FrameHeader(Protocol.LIFECYCLE_VERSION, client.epochLow, body.length + cut)
              .writeTo(MemorySegment.ofArray(bytes));
          System.arraycopy(body, 0, bytes, FrameHeader.BYTES, body.length);
          client.sendBytes(bytes);
        }
      }
      eventually(() -> manager.counters().connectionFailures(Status.INVALID) == 2);
      assertThat(manager.isStopping()).isFalse();
    }
  }

  @Test
  void shouldServeOthersWhenAnEngineFillsItsWakesAndMakesThemBlock() {
    try (Manager _ = startReady();
        RawClient bad = new RawClient(socket);
        RawClient good = new RawClient(socket)) {
      bad.handshake();
      bad.confirm();
      good.handshake();
      good.confirm();
      for (Fd wake : bad.fds.subList(2, 5)) {
        Hostile.fillAndMakeBlocking(wake);
      }
      try (Mapping channel = mapChannel(bad)) {
        MemorySegment region = channel.segment();
        Memory.putIntVolatile(region, ChannelDescriptor.RESTORE_SLEEPS_OFFSET, 1);
        var requests = new CommandRing.Producer(region, ChannelDescriptor.QUERY_REQUESTS);
        var replies = new CommandRing.Consumer(region, ChannelDescriptor.QUERY_REPLIES);
        Command command = new Command();
        requests.tryWrite(command.set(Opcode.PING, 0, 1, bad.epochLow, 0, 0));
        eventually(() -> replies.tryRead(command));
      }
      assertThat(good.register(4096, false).hasRegistered()).isTrue();
      bad.sayClose();
      assertThat(good.sayClose().hasClosed()).isTrue();
    }
  }

  @Test
  void shouldUseAByteRingForLookups() {
    try (Manager _ = startReady();
        RawClient client = new RawClient(socket)) {
      client.handshake();
      client.confirm();
      try (Mapping channel = mapChannel(client)) {
        var requests =
            new CommandRing.Producer(channel.segment(), ChannelDescriptor.QUERY_REQUESTS);
        var bytes = new ByteRing.Producer(channel.segment(), ChannelDescriptor.QUERY_REQUESTS);
        long at = bytes.tryClaim(16);
        assertThat(at).isPositive();
        Memory.putLong(bytes.memory(), at, -1);
        Command command = new Command().set(Opcode.LOOKUP, 0, 1, client.epochLow, 0, 0);
        bytes.commit(16, command);
        requests.tryWrite(command);
        assertThat(client.receive()).as("nonsense ends the session").isNull();
      }
    }
  }
}
