package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Failure;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.channel.proto.Unregister;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class OrbitKvClientTest {
  private static final Duration BOUND = Duration.ofSeconds(20);
  private static final Duration SHORT = Duration.ofSeconds(2);

  private final MemorySegment memory = Arena.ofAuto().allocate(1 << 16, 64);
  private final RegistrationSpec spec =
      new RegistrationSpec(
          StateFields.newBuilder().setHashBytes(16).build(),
          List.of(GroupSpec.contiguous(memory, 4096, 16)),
          false);

  @TempDir private Path directory;
  private ScriptedManager manager;
  private OrbitKvClient client;

  @BeforeEach
  void startManager() {
    manager = new ScriptedManager(directory.resolve("socket"));
  }

  @AfterEach
  void closeAll() {
    if (client != null) {
      manager.script = ScriptedManager::usual;
      client.close();
    }
    manager.close();
  }

  private void connect(Duration timeout) {
    client =
        OrbitKvClient.connect(
            new ClientConfig(
                directory.resolve("socket"), "instance", "test", timeout, 25_000, 1, false));
  }

  private void answer(ClientFrame.BodyCase kind, Function<ClientFrame, ManagerFrame> answer) {
    manager.script =
        frame -> frame.getBodyCase() == kind ? answer.apply(frame) : ScriptedManager.usual(frame);
  }

  private void assertWithdrawn() throws InterruptedException {
    Unregister unregister = manager.await(ClientFrame.BodyCase.UNREGISTER).getUnregister();
    assertThat(unregister.getRegistrationId()).isEqualTo(ScriptedManager.REGISTRATION_ID);
    assertThat(unregister.getGeneration()).isEqualTo(ScriptedManager.GENERATION);
  }

  @Test
  void shouldTellOfPublishesWhileAnotherCallHoldsTheClient() {
    connect(BOUND);
    OrbitKvClient held = client;
    synchronized (held) { // as a close that waits does
      assertThat(CompletableFuture.supplyAsync(held::publishActivity)).succeedsWithin(BOUND);
    }
  }

  @Test
  void shouldWithdrawARegistrationThatCannotBeMapped() throws InterruptedException {
    connect(BOUND);
    answer(
        ClientFrame.BodyCase.REGISTER,
        _ ->
            ManagerFrame.newBuilder()
                .setRegistered(ScriptedManager.registered().addArenaBytes(4096))
                .build());
    assertThatThrownBy(() -> client.register(spec))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("arenas=1, descriptors=0");
    assertWithdrawn();
  }

  @Test
  void shouldWithdrawARegistrationThatIsNotConfirmed() throws InterruptedException {
    connect(BOUND);
    answer(
        ClientFrame.BodyCase.CONFIRM_MAPPINGS,
        _ ->
            ManagerFrame.newBuilder()
                .setFailure(
                    Failure.newBuilder()
                        .setCode(Status.INTERNAL.code())
                        .setMessage("refused by the test"))
                .build());
    assertThatThrownBy(() -> client.register(spec))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("refused by the test");
    assertWithdrawn();
    manager.script = ScriptedManager::usual;
    assertThat(client.register(spec).id()).isEqualTo(ScriptedManager.REGISTRATION_ID);
  }

  @Test
  void shouldWithdrawARegistrationWhoseAnswerComesLate() throws InterruptedException {
    connect(SHORT);
    CountDownLatch gaveUp = new CountDownLatch(1);
    answer(
        ClientFrame.BodyCase.REGISTER,
        frame -> {
          awaitLatch(gaveUp);
          return ScriptedManager.usual(frame);
        });
    assertThatThrownBy(() -> client.register(spec)).isInstanceOf(OrbitKvTimeoutException.class);
    gaveUp.countDown();
    assertWithdrawn();
  }

  private static void awaitLatch(CountDownLatch latch) {
    try {
      assertThat(latch.await(BOUND.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void shouldCloseWhollyOnAnInterruptedThread() throws InterruptedException {
    connect(BOUND);
    Registration registration = client.register(spec);
    Thread.currentThread().interrupt();
    client.close();
    assertThat(Thread.interrupted()).as("interrupt is kept").isTrue();
    assertWithdrawn();
    manager.await(ClientFrame.BodyCase.CLOSE);
    registration.close();
    client.close();
    assertThat(manager.received).as("nothing was left to close").isEmpty();
  }

  @Test
  void shouldCloseARegistrationAgainAfterATimeOut() throws InterruptedException {
    connect(SHORT);
    Registration registration = client.register(spec);
    CountDownLatch gaveUp = new CountDownLatch(1);
    answer(
        ClientFrame.BodyCase.UNREGISTER,
        frame -> {
          awaitLatch(gaveUp);
          return ScriptedManager.usual(frame);
        });
    assertThatThrownBy(registration::close).isInstanceOf(OrbitKvTimeoutException.class);
    assertWithdrawn();
    answer(
        ClientFrame.BodyCase.UNREGISTER,
        _ ->
            ManagerFrame.newBuilder()
                .setFailure(Failure.newBuilder().setCode(Status.UNKNOWN_REGISTRATION.code()))
                .build());
    gaveUp.countDown();
    registration.close();
    assertWithdrawn();
  }

  @Test
  void shouldRefuseToCancelAQueryWithoutIdentity() {
    connect(BOUND);
    assertThatThrownBy(() -> client.cancelQuery(0, 1))
        .isInstanceOfSatisfying(
            OrbitKvException.class, e -> assertThat(e.status()).isEqualTo(Status.INVALID));
  }
}
