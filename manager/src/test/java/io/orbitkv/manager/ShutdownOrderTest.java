package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.AdminRequest;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.ShutdownRequest;
import io.orbitkv.channel.proto.StatusRequest;
import io.orbitkv.channel.proto.Unregister;
import io.orbitkv.linux.LinuxException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/** What is accepted before a stop, and what becomes of it. */
@Timeout(120)
class ShutdownOrderTest {
  private static final int PUBLISHES = ChannelDescriptor.PUBLISH_REQUESTS;

  /** Frames whose answers do not fit into the buffers of a socket together. */
  private static final int FRAMES = 120;

  @TempDir private Path directory;
  private Manager manager;
  private Path socket;

  @BeforeEach
  void startManager() {
    socket = directory.resolve("manager.sock");
    manager =
        Manager.start(
            ManagerConfig.builder(socket, 16L << 20)
                .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .build());
    manager.awaitReady(Duration.ofSeconds(30));
  }

  @AfterEach
  void stopManager() {
    manager.close();
  }

  private CompletableFuture<Boolean> stop(Duration drain) {
    CompletableFuture<Boolean> stopped = CompletableFuture.supplyAsync(() -> manager.stop(drain));
    RawEngine.eventually("a Manager that stops", manager::isStopping);
    return stopped;
  }

  private static boolean result(CompletableFuture<Boolean> stopped) throws Exception {
    return stopped.get(60, TimeUnit.SECONDS);
  }

  private static ClientFrame statusFrame() {
    return ClientFrame.newBuilder()
        .setAdmin(AdminRequest.newBuilder().setStatus(StatusRequest.getDefaultInstance()))
        .build();
  }

  private static ClientFrame shutdownFrame() {
    return ClientFrame.newBuilder()
        .setAdmin(AdminRequest.newBuilder().setShutdown(ShutdownRequest.getDefaultInstance()))
        .build();
  }

  /** The beginning of a frame that would stop the Manager. */
  private static byte[] partOfAFrame(RawClient client) {
    byte[] bytes = client.bytes(shutdownFrame());
    return Arrays.copyOf(bytes, bytes.length - 1);
  }

  @Test
  void shouldAnswerEachWholeFrameThatArrivedAndNoPart() throws Exception {
    try (RawEngine engine = new RawEngine(socket, "engine")) {
      for (int i = 0; i < FRAMES; i++) {
        engine.client.send(statusFrame()); // the answers wait in the socket, then in the Manager
      }
      engine.client.sendBytes(partOfAFrame(engine.client));
      CompletableFuture<Void> read = readFromTheEndOn(engine);
      CompletableFuture<Boolean> stopped = stop(Duration.ofSeconds(10));
      read.get(60, TimeUnit.SECONDS);
      assertThat(result(stopped)).isTrue();
    }
  }

  /** Reads on a thread of its own as soon as the session has ended: each answer has its bound. */
  private static CompletableFuture<Void> readFromTheEndOn(RawEngine engine) {
    return CompletableFuture.runAsync(
        () -> {
          RawEngine.eventually("the end of the session", engine::isClosed);
          for (int i = 0; i < FRAMES; i++) {
            ManagerFrame answer = engine.client.receive();
            assertThat(answer).as("answer %d", i).isNotNull();
            assertThat(answer.getAdmin().getJson()).as("answer %d", i).contains("\"sessions\"");
          }
          assertNothingMore(engine);
        },
        task -> Thread.ofPlatform().daemon().name("test-reader").start(task));
  }

  /** What was not whole may be named in a failure, and is never done. */
  private static void assertNothingMore(RawEngine engine) {
    ManagerFrame last = engine.client.receive();
    if (last != null) {
      assertThat(last.getFailure().getCode()).isEqualTo(Status.INVALID.code());
      assertThat(engine.client.receive()).isNull();
    }
  }

  @Test
  void shouldTakeNoFrameOnceTheSessionHasEnded() throws Exception {
    try (RawEngine engine = new RawEngine(socket, "engine")) {
      CompletableFuture<Boolean> stopped = stop(Duration.ofSeconds(10));
      assertThat(result(stopped)).isTrue();
      LinuxException refused = null;
      try {
        engine.client.send(statusFrame());
      } catch (LinuxException e) {
        refused = e;
      }
      assertThat(refused).isNotNull();
    }
  }

  @Test
  void shouldFinishAcceptedPublishesAndTakeNoOther() throws Exception {
    try (RawEngine engine = new RawEngine(socket, "engine")) {
      long accepted = engine.reserve(0);
      engine.write(PUBLISHES, engine.command(Opcode.PUBLISH, accepted), engine.publishData(1));
      engine.wake();
      engine.awaitState(0, GrantState.GRANTED);
      engine.move(0, GrantState.ACTIVE);
      CompletableFuture<Boolean> stopped = stop(Duration.ofSeconds(60));
      RawEngine.eventually(
          "publishes that are refused",
          () -> {
            int slot = 1;
            while (engine.state(slot) != GrantState.FREE) {
              slot++;
            }
            long late = engine.reserve(slot);
            engine.write(PUBLISHES, engine.command(Opcode.PUBLISH, late), engine.publishData(2));
            engine.wake();
            int asked = slot;
            RawEngine.eventually(
                "an outcome",
                () ->
                    engine.state(asked) == GrantState.REAPED
                        || engine.state(asked) == GrantState.GRANTED);
            if (engine.state(asked) == GrantState.GRANTED) {
              engine.move(asked, GrantState.ACTIVE); // before the gate: it is finished as well
              engine.finishActive(asked);
              return false;
            }
            return engine.table.status(asked) == Status.STOPPING;
          });
      assertThat(stopped.isDone()).as("stopped with a publish in progress").isFalse();
      engine.finishActive(0);
      assertThat(engine.table.status(0)).isEqualTo(Status.OK);
      assertThat(engine.table.stored(0)).isEqualTo(1);
      assertThat(result(stopped)).as("drained").isTrue();
    }
  }

  @Test
  void shouldBoundTheWaitForAnEngineThatDoesNotFinish() throws Exception {
    try (RawEngine engine = new RawEngine(socket, "engine")) {
      long operation = engine.reserve(0);
      engine.write(PUBLISHES, engine.command(Opcode.PUBLISH, operation), engine.publishData(1));
      engine.wake();
      engine.awaitState(0, GrantState.GRANTED);
      engine.move(0, GrantState.ACTIVE);
      engine.client.send(
          ClientFrame.newBuilder().setUnregister(Unregister.newBuilder().setGeneration(1)).build());
      long began = System.nanoTime();
      assertThat(result(stop(Duration.ofMillis(200)))).as("drained").isFalse();
      assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(40));
      assertThat(engine.client.receive().getFailure().getCode())
          .as("answer to the unregister")
          .isEqualTo(Status.STOPPING.code());
      assertThat(engine.isClosed()).isTrue();
      assertThat(engine.state(0)).as("still the engine's").isEqualTo(GrantState.ACTIVE);
    }
  }

  @Test
  void shouldAnswerTheShutdownThatStopsIt() throws Exception {
    try (RawClient admin = new RawClient(socket)) {
      admin.adminHandshake();
      admin.sendBytes(admin.bytes(shutdownFrame(), statusFrame())); // both are there when it stops
      assertThat(admin.receive().getAdmin().getJson()).contains("stopping");
      assertThat(JsonMapper.shared().readTree(admin.receive().getAdmin().getJson()).has("state"))
          .isTrue();
      manager.awaitTermination();
      assertThat(admin.receive()).isNull();
    }
  }
}
