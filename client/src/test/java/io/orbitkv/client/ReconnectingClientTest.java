package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Failure;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.StateFields;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ReconnectingClientTest {
  private static final Duration BOUND = Duration.ofSeconds(20);

  /** Bound of calls that are expected to reach it. */
  private static final Duration SHORT = Duration.ofSeconds(2);

  private static final Logger LOG = Logger.getLogger(ManagerKeeper.class.getName());

  private final MemorySegment memory = Arena.ofAuto().allocate(1 << 16, 64);
  private final BlockHashes hashes = BlockHashes.of(List.of(new byte[16], new byte[16]));
  private final ConcurrentLinkedQueue<String> warnings = new ConcurrentLinkedQueue<>();
  private final Handler handler =
      new Handler() {
        @Override
        public void publish(LogRecord message) {
          if (message.getLevel().intValue() >= Level.WARNING.intValue()) {
            warnings.add(message.getMessage());
          }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
      };

  @TempDir private Path directory;
  private ScriptedManager manager;
  private ReconnectingClient client;

  @BeforeEach
  void listen() {
    LOG.addHandler(handler);
    LOG.setUseParentHandlers(false);
  }

  @AfterEach
  void closeAll() {
    LOG.removeHandler(handler);
    LOG.setUseParentHandlers(true);
    if (manager != null) {
      manager.script = ScriptedManager::usual;
    }
    if (client != null) {
      client.close();
    }
    if (manager != null) {
      manager.close();
    }
  }

  private static RegistrationSpec spec(MemorySegment memory, String layout) {
    return new RegistrationSpec(
        StateFields.newBuilder()
            .setModel("m")
            .setComputeDtype("bf16")
            .setKvDtype("bf16")
            .setLayout(layout)
            .setBlockTokens(16)
            .setTpSize(1)
            .setPpSize(1)
            .setDcpSize(1)
            .setHashScheme("test")
            .setHashBytes(16)
            .setEngine("test")
            .build(),
        List.of(GroupSpec.contiguous(memory, 4096, 16)),
        false);
  }

  private RegistrationSpec spec() {
    return spec(memory, "NHD");
  }

  private void startManager() {
    manager = new ScriptedManager(directory.resolve("socket"));
  }

  private void connect(Duration timeout) {
    client =
        ReconnectingClient.connect(
            new ClientConfig(
                directory.resolve("socket"), "instance", "test", timeout, 25_000, 1, false));
  }

  private void answer(ClientFrame.BodyCase kind, Function<ClientFrame, ManagerFrame> answer) {
    manager.script =
        frame -> frame.getBodyCase() == kind ? answer.apply(frame) : ScriptedManager.usual(frame);
  }

  private static ManagerFrame failure(Status status, String message) {
    return ManagerFrame.newBuilder()
        .setFailure(
            Failure.newBuilder()
                .setCode(status.code())
                .setMessage(message)
                .setChannelVersion(99)
                .setLifecycleVersion(98))
        .build();
  }

  private void await(String what, Predicate<ConnectionState> condition) {
    long deadline = System.nanoTime() + BOUND.toNanos();
    while (!condition.test(client.state())) {
      assertThat(System.nanoTime()).as(what + ": " + client.state()).isLessThan(deadline);
      LockSupport.parkNanos(1_000_000);
    }
  }

  private static void await(ReconnectingRegistration registration) {
    long deadline = System.nanoTime() + BOUND.toNanos();
    while (!registration.isRegistered()) {
      assertThat(System.nanoTime()).as("registered").isLessThan(deadline);
      LockSupport.parkNanos(1_000_000);
    }
  }

  private static List<PublishItem> items() {
    return List.of(
        new PublishItem(0, 0, null, BlockHashes.of(List.of(new byte[16])), new int[] {0}));
  }

  @Test
  void shouldAnswerWithoutAManager() {
    connect(BOUND);
    ConnectionState state = client.state();
    assertThat(state.connected()).isFalse();
    assertThat(state.lastError()).contains("socket=" + directory.resolve("socket"));
    ReconnectingRegistration registration = client.register(spec());
    assertThat(registration.isRegistered()).isFalse();
    assertThat(registration.generation()).isZero();
    LookupResult found = client.lookup(LookupRequestSpec.prefix(registration.namespace(), hashes));
    assertThat(found.outcome()).isEqualTo(LookupResult.Outcome.MISS);
    assertThat(found.prefix()).isZero();
    long[] lease = {1, 1, 1};
    assertThat(client.lookupPrefix(registration.namespace(), hashes, lease)).isZero();
    assertThat(lease).containsOnly(0);
    assertThat(client.release(new Lease(1, 1, 0, 0, 1))).isFalse();
    client.cancelQuery(1, 1);
    assertThat(client.mayPublish()).isFalse();
    assertThatThrownBy(() -> registration.save(items(), Fence.done()))
        .isInstanceOf(SaveNotSubmittedException.class)
        .hasMessageContaining("nothing was submitted: no Manager");
    List<RestoreItem> restored = List.of(RestoreItem.of(new Lease(1, 1, 0, 0, 1), 0));
    assertThatThrownBy(() -> registration.restore(restored, Fence.done()))
        .isInstanceOf(ManagerUnavailableException.class);
    registration.close();
    assertThatThrownBy(() -> registration.save(items(), Fence.done()))
        .isInstanceOfSatisfying(
            OrbitKvException.class,
            e -> assertThat(e.status()).isEqualTo(Status.UNKNOWN_REGISTRATION));
  }

  @Test
  void shouldRefuseAWrongRegistrationAlsoWithoutAManager() {
    connect(BOUND);
    assertThatThrownBy(() -> client.register(spec(memory, "guessed")))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("layout=\"guessed\"");
  }

  @Test
  void shouldSayALossOnceAndRegisterAgain() throws Exception {
    startManager();
    connect(BOUND);
    ReconnectingRegistration registration = client.register(spec());
    assertThat(registration.generation()).isEqualTo(ScriptedManager.GENERATION);
    assertThat(client.state().connected()).isTrue();
    manager.close();
    await("loss", state -> !state.connected());
    assertThat(registration.isRegistered()).isFalse();
    await("a failed attempt", state -> state.lastError().contains("connect failed"));
    Files.deleteIfExists(directory.resolve("socket"));
    startManager();
    await("return", state -> state.connected() && state.reconnects() == 1);
    await(registration);
    manager.await(ClientFrame.BodyCase.CONFIRM_MAPPINGS);
    assertThat(warnings).hasSize(1);
    assertThat(warnings.peek()).contains("no Manager: socket=");
  }

  @Test
  void shouldConnectWhenASocketAppearsWithoutWaitingForItsTime() throws Exception {
    long hour = TimeUnit.HOURS.toNanos(1);
    ClientConfig config =
        new ClientConfig(directory.resolve("socket"), "instance", "test", BOUND, 25_000, 1, false);
    client = ReconnectingClient.connect(new ManagerKeeper(config, new BackOff(hour, hour)));
    assertThat(client.state().connected()).isFalse();
    startManager();
    await("connected", ConnectionState::connected);
    manager.close();
    Files.deleteIfExists(directory.resolve("socket"));
    await("loss", state -> !state.connected());
    startManager();
    await("connected again", state -> state.connected() && state.reconnects() == 2);
  }

  @Test
  void shouldTryAgainWhileTheVersionsDiffer() throws InterruptedException {
    startManager();
    answer(ClientFrame.BodyCase.HELLO, _ -> failure(Status.VERSION_MISMATCH, "versions differ"));
    connect(BOUND);
    assertThat(client.state().connected()).isFalse();
    assertThat(client.state().lastError())
        .contains("client has channel=")
        .contains("Manager has channel=99, lifecycle=98");
    for (int i = 0; i < 3; i++) {
      manager.await(ClientFrame.BodyCase.HELLO);
    }
    assertThat(warnings).as("said once").hasSize(1);
    assertThat(warnings.peek()).contains("refused").contains("channel=99");
    manager.script = ScriptedManager::usual;
    await("connected", ConnectionState::connected);
  }

  @Test
  void shouldNameBothVersionsOfFrames() {
    startManager();
    manager.version = 77;
    connect(BOUND);
    assertThat(client.state().lastError())
        .contains("lifecycle version=77")
        .contains("this side has version=1");
    assertThat(warnings).hasSize(1);
    assertThat(warnings.peek()).contains("refused");
  }

  @Test
  void shouldRegisterLaterWithAManagerThatIsNotReady() {
    startManager();
    answer(ClientFrame.BodyCase.REGISTER, _ -> failure(Status.NOT_READY, "pool is being prepared"));
    connect(SHORT);
    ReconnectingRegistration registration = client.register(spec());
    assertThat(registration.isRegistered()).isFalse();
    await("connected", ConnectionState::connected);
    manager.script = ScriptedManager::usual;
    await(registration);
    assertThat(warnings).hasSizeLessThanOrEqualTo(1);
  }

  @Test
  void shouldChargeASaveUntilItHasEndedAndItsHandleIsClosed() {
    startManager();
    connect(BOUND);
    ReconnectingRegistration registration = client.register(spec());
    int before = SaveBudget.PROCESS.operations();
    SaveHandle first = registration.save(items(), Fence.done());
    SaveHandle second = registration.save(items(), Fence.done());
    assertThat(first.waitSave(Duration.ZERO)).as("pending, which proves nothing").isEmpty();
    PublishActivity activity = client.publishActivity();
    assertThat(activity.active()).isEqualTo(2);
    assertThat(activity.retained()).isZero();
    assertThat(activity.managerAlive()).isTrue();
    first.close();
    assertThat(SaveBudget.PROCESS.operations()).as("it goes on").isEqualTo(before + 2);
    first.cancel();
    second.cancel();
    assertThat(first.waitSave(BOUND).orElseThrow().status()).isEqualTo(Status.CANCELLED);
    assertThat(second.waitSave(BOUND).orElseThrow().status()).isEqualTo(Status.CANCELLED);
    awaitCharged(before + 1);
    second.close();
    second.close();
    awaitCharged(before);
    assertThat(client.publishActivity().active()).isZero();
  }

  @Test
  void shouldTellOfPublishesWhileTheKeeperIsBusy() {
    startManager();
    connect(BOUND);
    ReentrantLock lock = (ReentrantLock) StateHash.field(StateHash.field(client, "keeper"), "lock");
    lock.lock(); // as a registration that waits does
    try {
      assertThat(CompletableFuture.supplyAsync(client::publishActivity)).succeedsWithin(BOUND);
    } finally {
      lock.unlock();
    }
  }

  private static void awaitCharged(int operations) {
    long deadline = System.nanoTime() + BOUND.toNanos();
    while (SaveBudget.PROCESS.operations() != operations) {
      assertThat(System.nanoTime()).as("charged operations").isLessThan(deadline);
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void shouldEndSavesWithTheSessionAndKeepNothingCharged() {
    startManager();
    connect(BOUND);
    ReconnectingRegistration registration = client.register(spec());
    int before = SaveBudget.PROCESS.operations();
    try (SaveHandle save = registration.save(items(), Fence.done())) {
      manager.hangUp();
      assertThat(save.waitSave(BOUND).orElseThrow().status()).isEqualTo(Status.SESSION_ENDED);
      assertThat(save.pagesFree()).isTrue();
    }
    awaitCharged(before);
  }

  @Test
  void shouldForgetARegistrationThatIsRefused() throws InterruptedException {
    startManager();
    answer(ClientFrame.BodyCase.REGISTER, _ -> failure(Status.INSTANCE_HELD, "held by pid=4"));
    connect(BOUND);
    assertThatThrownBy(() -> client.register(spec())).hasMessageContaining("held by pid=4");
    manager.script = ScriptedManager::usual;
    manager.received.clear();
    manager.hangUp();
    await("return", state -> state.reconnects() == 1);
    assertThat(manager.received)
        .extracting(ClientFrame::getBodyCase)
        .doesNotContain(ClientFrame.BodyCase.REGISTER);
  }

  @Test
  void shouldCloseWithinItsBoundWhileAManagerIsSilent() throws InterruptedException {
    startManager();
    CountDownLatch over = new CountDownLatch(1);
    connect(SHORT);
    await(client.register(spec()));
    manager.script =
        frame -> {
          try {
            assertThat(over.await(BOUND.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
          return ScriptedManager.usual(frame);
        };
    client.close();
    await("closed", state -> !state.connected());
    assertThatThrownBy(() -> client.lookup(LookupRequestSpec.prefix(new byte[32], hashes)))
        .hasMessageContaining("client is closed");
    over.countDown();
  }
}
