package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.linux.Affinity;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A client whose two copy threads share a copy, while one of them is held inside its share: pages
 * stay taken until it has left, whatever the caller does, and nothing stays taken afterwards.
 */
@Timeout(120)
@ParameterizedClass(name = "kind={0}")
@ValueSource(ints = {GrantTable.RESTORE, GrantTable.PUBLISH})
class HeldHelperTest {

  /** Bound of the client's calls. */
  private static final Duration CALL_BOUND = Duration.ofSeconds(5);

  /** As {@link #CALL_BOUND}, where a close is to reach it: three times, one after the other. */
  private static final Duration CLOSE_BOUND = Duration.ofSeconds(2);

  /** Waits that are expected to reach their bound. */
  private static final Duration SHORT = Duration.ofMillis(500);

  private static final int HASH_BYTES = 16;
  private static final int BLOCK_BYTES = 256 << 10;
  private static final int BLOCKS = 24;
  private static final int BLOCKS_AN_ARENA = BLOCKS / 2;
  private static final int[] PAGES = IntStream.range(0, BLOCKS).map(i -> BLOCKS - 1 - i).toArray();

  /** A restore or publish, as its caller sees it. */
  private record Call(
      long operationId,
      Function<Duration, Status> await,
      BooleanSupplier pagesFree,
      Runnable cancel) {}

  private final boolean restores;
  private final MemorySegment pages = Arena.ofAuto().allocate((long) BLOCKS * BLOCK_BYTES, 4096);
  private final AtomicBoolean held = new AtomicBoolean();
  private final CountDownLatch helperIsInside = new CountDownLatch(1);
  private final CountDownLatch driverMayGoOn = new CountDownLatch(1);
  private final CountDownLatch helperMayGoOn = new CountDownLatch(1);

  @TempDir private Path directory;
  private int chargedBefore;
  private ScriptedManager manager;
  private FakeManager grants;
  private OrbitKvClient client;
  private Registration registration;
  private PageClaims claims;

  HeldHelperTest(int kind) {
    this.restores = kind == GrantTable.RESTORE;
  }

  private void connect(Duration callBound) {
    assumeThat(Affinity.allowedCpus()).as("processors").hasSizeGreaterThan(1);
    chargedBefore = SaveBudget.PROCESS.operations();
    manager = new ScriptedManager(directory.resolve("socket"));
    grants = manager.withArenas();
    ClientConfig config =
        new ClientConfig(
            directory.resolve("socket"),
            "instance",
            "test",
            callBound,
            ClientConfig.DEFAULT_SPIN_NS,
            2,
            false);
    client = OrbitKvClient.connect(config);
    GroupSpec group = GroupSpec.contiguous(pages, BLOCK_BYTES, BLOCKS);
    claims = PageClaims.enter(GroupMemory.of(group, true).address());
    registration =
        client.register(
            new RegistrationSpec(
                StateFields.newBuilder().setHashBytes(HASH_BYTES).build(), List.of(group), false));
    Random random = new Random(17);
    fill(pages, random);
    for (MemorySegment arena : grants.arenas) {
      fill(arena, random);
    }
    PausePoints.onReached(this::reached);
  }

  @AfterEach
  void closeAll() {
    driverMayGoOn.countDown();
    helperMayGoOn.countDown();
    if (client != null) {
      client.close();
      claims.leave();
    }
    if (manager != null) {
      manager.close();
    }
    PausePoints.onReached(_ -> {});
  }

  private static void fill(MemorySegment memory, Random random) {
    for (long i = 0; i < memory.byteSize(); i += Long.BYTES) {
      memory.set(ValueLayout.JAVA_LONG, i, random.nextLong());
    }
  }

  private void reached(String point) {
    if (point.endsWith(".shared")) {
      Waits.await(driverMayGoOn);
    } else if (point.endsWith(".helping") && held.compareAndSet(false, true)) {
      helperIsInside.countDown();
      Waits.await(helperMayGoOn);
    }
  }

  private Call begin() {
    return begin(CALL_BOUND);
  }

  /** Begins an operation; its driver is held behind its call for help, its helper in a share. */
  private Call begin(Duration callBound) {
    connect(callBound);
    Call call = restores ? restore() : publish();
    grants.move(call.operationId, GrantState.PREPARING);
    for (int i = 0; i < BLOCKS; i++) {
      grants.plan(i, i / BLOCKS_AN_ARENA, 0, PAGES[i], offset(i), BLOCK_BYTES, 0);
    }
    grants.grant(call.operationId, BLOCKS);
    manager.wakeClient();
    Waits.await(helperIsInside);
    return call;
  }

  private Call restore() {
    Lease lease = new Lease(77, FakeManager.EPOCH, 0, 0, BLOCKS);
    RestoreHandle handle =
        registration.restore(List.of(RestoreItem.of(lease, PAGES)), Fence.done());
    return new Call(
        handle.operationId(),
        bound -> {
          RestoreResult result = handle.await(bound);
          return result == null ? null : result.status();
        },
        handle::pagesFree,
        handle::cancel);
  }

  private Call publish() {
    BlockHashes hashes = BlockHashes.of(new byte[HASH_BYTES * BLOCKS], HASH_BYTES);
    PublishItem item = new PublishItem(0, 0, null, hashes, PAGES);
    PublishHandle handle = registration.publish(List.of(item), Fence.done());
    return new Call(
        handle.operationId(),
        bound -> {
          PublishResult result = handle.await(bound);
          return result == null ? null : result.status();
        },
        handle::pagesFree,
        handle::cancel);
  }

  private static long offset(int block) {
    return (long) (block % BLOCKS_AN_ARENA) * BLOCK_BYTES;
  }

  private int blocksCopied() {
    int copied = 0;
    for (int i = 0; i < BLOCKS; i++) {
      MemorySegment pool = grants.arenas[i / BLOCKS_AN_ARENA].asSlice(offset(i), BLOCK_BYTES);
      MemorySegment page = pages.asSlice((long) PAGES[i] * BLOCK_BYTES, BLOCK_BYTES);
      copied += page.mismatch(pool) == -1 ? 1 : 0;
    }
    return copied;
  }

  /** The caller waits until its bound, and helps meanwhile. */
  private void assertTimesOut(Call call) {
    assertThat(call.await.apply(SHORT)).isNull();
    assertPagesTaken(call);
  }

  /** For as long as {@link #SHORT}; the caller only looks. */
  private void assertPagesStayTaken(Call call) {
    long began = System.nanoTime();
    while (System.nanoTime() - began < SHORT.toNanos()) {
      assertThat(call.await.apply(Duration.ZERO)).isNull();
      assertPagesTaken(call);
      LockSupport.parkNanos(1_000_000);
    }
  }

  private void assertPagesTaken(Call call) {
    assertThat(call.pagesFree.getAsBoolean()).isFalse();
    assertThat(claims.isUnclaimed()).isEqualTo(!restores);
    assertThat(grants.state(call.operationId)).isEqualTo(GrantState.ACTIVE);
    if (!restores) {
      assertThat(SaveBudget.PROCESS.operations()).isPositive();
    }
  }

  /** Lets the helper leave, and acts as the Manager; how the call ended. */
  private Status end(Call call) {
    helperMayGoOn.countDown();
    Waits.await("free pages", call.pagesFree);
    assertThat(grants.state(call.operationId)).isEqualTo(GrantState.DRAINED);
    int whole = grants.table.entriesDone(GrantWord.slotOf(call.operationId));
    int stored = restores || whole < BLOCKS ? 0 : whole;
    grants.reap(call.operationId, Status.OK, stored, 0, 0);
    manager.wakeClient();
    Status status = call.await.apply(Waits.BOUND);
    Waits.await("settled operations", client::isIdle);
    assertNothingTaken(call);
    return status;
  }

  private void assertNothingTaken(Call call) {
    assertThat(call.pagesFree.getAsBoolean()).isTrue();
    assertThat(claims.isUnclaimed()).isTrue();
    assertThat(SaveBudget.PROCESS.operations()).isLessThanOrEqualTo(chargedBefore);
    assertThat(client.publishActivity().active()).isZero();
  }

  @Test
  void shouldKeepThePagesOfAWaitThatTimedOut() {
    Call call = begin();
    driverMayGoOn.countDown();
    assertTimesOut(call);
    assertThat(end(call)).isEqualTo(Status.OK);
    assertThat(blocksCopied()).isEqualTo(BLOCKS);
  }

  @Test
  void shouldKeepThePagesOfACancelledCopy() {
    Call call = begin();
    call.cancel.run();
    driverMayGoOn.countDown();
    assertPagesStayTaken(call);
    assertTimesOut(call);
    assertThat(end(call)).isEqualTo(Status.CANCELLED);
    assertThat(blocksCopied()).isBetween(1, BLOCKS - 1);
  }

  @Test
  void shouldKeepPagesAndMappingsWhenTheClientIsClosed() {
    Call call = begin(CLOSE_BOUND);
    driverMayGoOn.countDown();
    assertTimesOut(call);
    client.close();
    assertThat(client.isClosed()).isFalse();
    assertPagesTaken(call);
    assertThat(call.await.apply(Duration.ZERO)).isNull();
    helperMayGoOn.countDown();
    Waits.await("close", this::closes);
    assertNothingTaken(call);
    assertThat(grants.state(call.operationId)).isEqualTo(GrantState.DRAINED);
    assertThat(call.await.apply(Duration.ZERO))
        .isEqualTo(restores ? Status.OK : Status.SESSION_ENDED);
    assertThat(blocksCopied()).isEqualTo(BLOCKS);
  }

  private boolean closes() {
    client.close();
    return client.isClosed();
  }
}
