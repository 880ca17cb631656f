package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.StateFields;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A restore or save that is held before it has a record, while its session or its registration is
 * closed: it is refused with the reason, and leaves nothing behind.
 */
@Timeout(120)
@ParameterizedClass(name = "restores={0}")
@ValueSource(booleans = {true, false})
class SubmitBesideCloseTest {
  private static final int BLOCK_BYTES = 4096;
  private static final int HASH_BYTES = 16;

  private final boolean restores;
  private final MemorySegment pages = Arena.ofAuto().allocate(1 << 16, 64);
  private final GroupSpec group = GroupSpec.contiguous(pages, BLOCK_BYTES, 16);
  private final PageClaims claims = PageClaims.enter(GroupMemory.of(group, true).address());
  private final FutureTask<Throwable> submit =
      new FutureTask<>(() -> catchThrowable(this::restoreOrSave));
  private final Thread caller = Thread.ofPlatform().daemon().unstarted(submit);
  private final CountDownLatch admitted = new CountDownLatch(1);
  private final CountDownLatch mayGoOn = new CountDownLatch(1);

  @TempDir private Path directory;
  private int chargedBefore;
  private ScriptedManager manager;
  private ReconnectingClient client;
  private ReconnectingRegistration registration;

  /** What the registration is with the Manager that a test ends. */
  private Registration live;

  private OrbitKvClient session;

  SubmitBesideCloseTest(boolean restores) {
    this.restores = restores;
  }

  @BeforeEach
  void connect() {
    chargedBefore = SaveBudget.PROCESS.operations();
    manager = new ScriptedManager(directory.resolve("socket"));
    client =
        ReconnectingClient.connect(
            new ClientConfig(
                directory.resolve("socket"), "instance", "test", Waits.BOUND, 25_000, 1, false));
    StateFields state =
        StateFields.newBuilder()
            .setModel("m")
            .setComputeDtype("bf16")
            .setKvDtype("bf16")
            .setLayout("NHD")
            .setBlockTokens(16)
            .setTpSize(1)
            .setPpSize(1)
            .setDcpSize(1)
            .setHashScheme("test")
            .setHashBytes(HASH_BYTES)
            .setEngine("test")
            .build();
    registration = client.register(new RegistrationSpec(state, List.of(group), false));
    live = (Registration) StateHash.field(registration, "live");
    session = (OrbitKvClient) StateHash.field(live, "client");
    PausePoints.onReached(this::reached);
  }

  @AfterEach
  void closeAll() {
    PausePoints.onReached(_ -> {});
    mayGoOn.countDown();
    client.close();
    manager.close();
    claims.leave();
  }

  private void reached(String point) {
    if (point.endsWith(".admitted")) {
      admitted.countDown();
      Waits.await(mayGoOn);
    }
  }

  private void restoreOrSave() {
    int[] targets = {1};
    if (restores) {
      Lease lease = new Lease(77, FakeManager.EPOCH, 0, 0, 1);
      registration.restore(List.of(RestoreItem.of(lease, targets)), Fence.done());
    } else {
      BlockHashes hashes = BlockHashes.of(new byte[HASH_BYTES], HASH_BYTES);
      registration.save(List.of(new PublishItem(0, 0, null, hashes, targets)), Fence.done());
    }
  }

  /** Whether a thread waits inside a method. */
  private static boolean waitsIn(Thread thread, String method) {
    boolean waits =
        thread.getState() == Thread.State.BLOCKED
            || thread.getState() == Thread.State.TIMED_WAITING;
    return waits
        && Arrays.stream(thread.getStackTrace())
            .anyMatch(frame -> frame.getMethodName().equals(method));
  }

  private boolean isCancelled() {
    Set<?> operations = (Set<?>) StateHash.field(live, "operations");
    return (boolean) StateHash.field(operations.iterator().next(), "cancelled");
  }

  private void assertSaysThatTheManagerIsGone() throws Exception {
    Throwable refused = submit.get(Waits.BOUND.toMillis(), TimeUnit.MILLISECONDS);
    assertThat(refused)
        .isInstanceOf(
            restores ? ManagerUnavailableException.class : SaveNotSubmittedException.class)
        .hasMessageContaining("session is over: the Manager has closed it or is gone");
    if (!restores) {
      assertThat(((OrbitKvException) refused).status()).isEqualTo(Status.SESSION_ENDED);
    }
    assertNothingTaken();
  }

  private void assertNothingTaken() {
    assertThat(claims.isUnclaimed()).isTrue();
    assertThat(SaveBudget.PROCESS.operations()).isLessThanOrEqualTo(chargedBefore);
  }

  @Test
  void shouldSayThatTheManagerIsGoneWhenTheCloseOfItsSessionCancelsIt() throws Exception {
    caller.start();
    Waits.await(admitted);
    manager.hangUp();
    Waits.await("cancel", this::isCancelled);
    mayGoOn.countDown();
    assertSaysThatTheManagerIsGone();
  }

  @Test
  void shouldSayThatTheManagerIsGoneWhenTheRegistrationIsClosedAlready() throws Exception {
    mayGoOn.countDown();
    QueryCalls queries = (QueryCalls) StateHash.field(session, "queries");
    QueryCalls.Call call = queries.take(); // the close of the session waits for it
    try {
      synchronized (claims) { // behind the look at the session
        caller.start();
        Waits.await(
            "look at the pages", () -> waitsIn(caller, restores ? "claim" : "requireUnclaimed"));
        manager.hangUp();
        Waits.await("closed registration", () -> (boolean) StateHash.field(live, "unmapped"));
      }
      assertSaysThatTheManagerIsGone();
      assertThat(session.isOpen()).isFalse();
    } finally {
      queries.giveBack(call);
    }
  }

  @Test
  void shouldSayThatTheManagerIsGoneWhenTheSessionIsUnmapped() throws Exception {
    mayGoOn.countDown();
    synchronized (claims) {
      caller.start();
      Waits.await(
          "look at the pages", () -> waitsIn(caller, restores ? "claim" : "requireUnclaimed"));
      manager.hangUp();
      Waits.await("closed session", session::isClosed);
    }
    assertSaysThatTheManagerIsGone();
  }

  @Test
  void shouldHaveNoOtherDriverThanItsCaller() throws Exception {
    EngineSession engine = (EngineSession) StateHash.field(session, "session");
    Thread closer = Thread.ofPlatform().daemon().unstarted(registration::close);
    caller.start();
    Waits.await(admitted);
    synchronized (StateHash.field(engine, "freeSlots")) { // whoever drives it waits for a record
      closer.start();
      Waits.await("close", () -> waitsIn(closer, "awaitPages"));
      mayGoOn.countDown();
      Waits.await("record", () -> submit.isDone() || waitsIn(caller, "takeSlot"));
    }
    assertThat(submit.get(Waits.BOUND.toMillis(), TimeUnit.MILLISECONDS))
        .isInstanceOfSatisfying(
            OrbitKvException.class, e -> assertThat(e.status()).isEqualTo(Status.CANCELLED))
        .hasMessageContaining("is closed");
    assertThat(Uninterruptibly.join(closer, Waits.BOUND.toNanos())).isTrue();
    assertNothingTaken();
  }
}
