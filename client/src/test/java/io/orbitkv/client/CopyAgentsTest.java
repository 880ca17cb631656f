package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Status;
import io.orbitkv.linux.EventFd;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CopyAgentsTest {
  private static final Duration BOUND = Duration.ofSeconds(20);
  private static final int BLOCK_BYTES = 4096;
  private static final int AGENTS = 2;

  private final FakeManager manager = new FakeManager();
  private final EventFd restoreWake = EventFd.create();
  private final EventFd publishWake = EventFd.create();
  private final CopyAgents agents = new CopyAgents(manager.session, restoreWake, publishWake);
  private final MemorySegment engine = Arena.ofAuto().allocate(1 << 20, 64);
  private final GroupMemory group =
      GroupMemory.of(GroupSpec.contiguous(engine, BLOCK_BYTES, 16), true);
  private final PageClaims[] claims = {PageClaims.enter(group.address())};
  private final CopyTools.Pool tools = new CopyTools.Pool(manager.arenas);

  @BeforeEach
  void startAgents() {
    agents.start(new QueryCalls(manager.session, agents, 1000), AGENTS, "test");
    manager.arenas[0].fill((byte) 7);
  }

  @AfterEach
  void stopAgents() {
    assertThat(agents.close(BOUND.toNanos())).isTrue();
    claims[0].leave();
    restoreWake.close();
    publishWake.close();
  }

  private RestoreOperation submit(Fence fence, int page) {
    RestoreOperation operation = reserve(fence, page, tools);
    agents.submitted();
    return operation;
  }

  private RestoreOperation reserve(Fence fence, int page, CopyTools.Pool pool) {
    int[] pages = {page};
    claims[0].claim(pages);
    Target.Builder target = new Target.Builder(new GroupMemory[] {group}, 1);
    target.add(0, pages);
    Lease lease = new Lease(1, FakeManager.EPOCH, 0, 0, 1);
    RestoreOperation operation =
        new RestoreOperation(
            manager.session,
            new RestoreSpan(0, 1, List.of(RestoreItem.of(lease, pages))),
            fence,
            BOUND.toNanos(),
            target.build(),
            manager.arenas,
            pool,
            claims,
            false);
    assertThat(operation.tryDrive()).isTrue();
    operation.step(System.nanoTime());
    operation.step(System.nanoTime());
    operation.endDrive();
    return operation;
  }

  private void grant(RestoreOperation operation, int page) {
    manager.move(operation.operationId(), GrantState.PREPARING);
    manager.plan(0, 0, 0, page, 0, BLOCK_BYTES, 0);
    manager.grant(operation.operationId(), 1);
    int sleeps = Memory.getIntVolatile(manager.channel, ChannelDescriptor.RESTORE_SLEEPS_OFFSET);
    if (sleeps != 0) {
      restoreWake.signal();
    }
  }

  private void awaitDone(EngineOperation operation) throws InterruptedException {
    operation.awaitUntil(operation::isDone, BOUND.toNanos());
    assertThat(operation.isDone()).isTrue();
  }

  @Test
  void shouldFinishAnOperationThatNobodyWaitsFor() throws InterruptedException {
    finishAnOperation();
  }

  private void finishAnOperation() throws InterruptedException {
    RestoreOperation operation = submit(Fence.done(), 3);
    grant(operation, 3);
    awaitDone(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
    assertThat(engine.get(java.lang.foreign.ValueLayout.JAVA_BYTE, 3 * BLOCK_BYTES))
        .isEqualTo((byte) 7);
    manager.reap(operation.operationId(), Status.OK, 0, 0, 0);
    agents.kickAgents();
    operation.awaitUntil(operation::isSettled, BOUND.toNanos());
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACKNOWLEDGED);
  }

  /** As a client that is closed once more after a copy outlasted the bound of the first time. */
  @Test
  void shouldSettleByALookWhatItsEndedThreadsLeft() {
    RestoreOperation operation = reserve(Fence.done(), 5, tools);
    assertThat(agents.close(BOUND.toNanos())).isTrue();
    grant(operation, 5);
    agents.look();
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    manager.reap(operation.operationId(), Status.OK, 0, 0, 0);
    assertThat(manager.session.isIdle()).isFalse();
    agents.look();
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACKNOWLEDGED);
    assertThat(manager.session.isIdle()).isTrue();
  }

  @Test
  void shouldLetACallerWorkWhileItWaits() {
    RestoreOperation operation = submit(Fence.done(), 4);
    RestoreHandle handle =
        new RestoreHandle(
            operation, new OperationHandle(operation, agents, TimeUnit.SECONDS.toNanos(1)));
    assertThat(handle.await(Duration.ofMillis(5))).as("pending").isNull();
    assertThat(handle.pagesFree()).isFalse();
    grant(operation, 4);
    assertThat(handle.await(BOUND).status()).isEqualTo(Status.OK);
    assertThat(handle.awaitLayer(0, BOUND)).isTrue();
    assertThat(handle.awaitLayer(1, BOUND)).isFalse();
    assertThat(handle.pagesFree()).isTrue();
  }

  @Test
  void shouldLookAtFencesWithoutAnySignal() throws InterruptedException {
    boolean[] fence = {false};
    RestoreOperation operation =
        submit(
            () -> {
              synchronized (fence) {
                return fence[0];
              }
            },
            5);
    grant(operation, 5);
    operation.awaitUntil(operation::awaitsFence, TimeUnit.MILLISECONDS.toNanos(20));
    assertThat(operation.isDone()).isFalse();
    synchronized (fence) {
      fence[0] = true;
    }
    awaitDone(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
  }

  @Test
  void shouldEndPendingOperationsWithTheSession() throws InterruptedException {
    RestoreOperation operation = submit(Fence.done(), 6);
    manager.session.end("test");
    agents.sessionEnded();
    awaitDone(operation);
    assertThat(operation.result().status()).isEqualTo(Status.SESSION_ENDED);
  }

  @Test
  void shouldLookAtOnceWhenAllAgentsAreParked() throws InterruptedException {
    RestoreOperation leftover = submit(Fence.done(), 7);
    grant(leftover, 7);
    awaitDone(leftover); // it stays, as the Manager does not reap it
    long[] waitedNs = new long[9];
    for (int i = 0; i < waitedNs.length; i++) {
      awaitAllParked();
      RestoreOperation operation = reserve(Fence.done(), 8, tools);
      operation.cancel(Status.CANCELLED, "test");
      long began = System.nanoTime();
      agents.submitted();
      awaitDone(operation);
      waitedNs[i] = System.nanoTime() - began;
    }
    assertPrompt(waitedNs);
  }

  @Test
  void shouldTakeOverWhatACallerNoLongerAttends() throws InterruptedException {
    long[] waitedNs = new long[9];
    for (int i = 0; i < waitedNs.length; i++) {
      awaitAllParked();
      AtomicBoolean fence = new AtomicBoolean();
      RestoreOperation operation = reserve(fence::get, 11, tools);
      grant(operation, 11);
      new OperationHandle(operation, agents, BOUND.toNanos())
          .awaitPart(operation::awaitsFence, BOUND);
      fence.set(true);
      long began = System.nanoTime();
      awaitDone(operation);
      assertThat(operation.result().status()).isEqualTo(Status.OK);
      waitedNs[i] = System.nanoTime() - began;
    }
    assertPrompt(waitedNs);
  }

  /** Without a wake-up it would take the 100 ms or the 1 s that an agent parks for. */
  private static void assertPrompt(long[] waitedNs) {
    Arrays.sort(waitedNs);
    assertThat(waitedNs[waitedNs.length / 2]).isLessThan(TimeUnit.MILLISECONDS.toNanos(60));
  }

  private static void awaitAllParked() {
    long began = System.nanoTime();
    boolean parked = allParked();
    while (!parked && System.nanoTime() - began < BOUND.toNanos()) {
      Thread.onSpinWait();
      parked = allParked();
    }
    assertThat(parked).isTrue();
  }

  private static boolean allParked() {
    return Thread.getAllStackTraces().entrySet().stream()
            .filter(entry -> entry.getKey().getName().startsWith("test-copy-"))
            .filter(entry ->
                entry.getKey().getState() == Thread.State.TIMED_WAITING
                    && Arrays.stream(entry.getValue())
                        .anyMatch(frame -> frame.getMethodName().equals("parkCold")))
            .count()
        == AGENTS;
  }

  @Test
  void shouldEndAnOperationWhoseFenceThrowsAnError() throws InterruptedException {
    RestoreOperation operation =
        submit(
            () -> {
              throw new StackOverflowError("test");
            },
            9);
    grant(operation, 9);
    awaitDone(operation);
    assertThat(operation.result().status()).isEqualTo(Status.INVALID);
    finishAnOperation();
  }

  @Test
  void shouldEndAnOperationWhoseStepFails() throws InterruptedException {
    RestoreOperation operation = reserve(Fence.done(), 10, null);
    agents.submitted();
    grant(operation, 10);
    awaitDone(operation);
    assertThat(operation.result().status()).isEqualTo(Status.COPY_FAILED);
    assertThat(operation.pagesFree()).isTrue();
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    finishAnOperation();
  }
}
