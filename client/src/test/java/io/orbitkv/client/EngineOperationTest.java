package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.GroupKind;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.PublishReply;
import io.orbitkv.channel.PublishRequest;
import io.orbitkv.channel.RestoreRequest;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EngineOperationTest {
  private static final long BOUND_NS = 1_000_000_000;
  private static final int PAGES = 8;
  private static final int LAYERS = 3;
  private static final int KEY_BYTES = 512;
  private static final int VALUE_BYTES = 256;
  private static final int BLOCK_BYTES = LAYERS * (KEY_BYTES + VALUE_BYTES);

  private final FakeManager manager = new FakeManager();
  private final MemorySegment engine = Arena.ofAuto().allocate(1 << 20, 64);
  private final GroupMemory group = GroupMemory.of(spec(), true);
  private final GroupMemory[] groups = {group};
  private final PageClaims[] claims = {PageClaims.enter(group.address())};
  private final CopyTools.Pool tools = new CopyTools.Pool(manager.arenas);
  private final SaveBudget budget = new SaveBudget();
  private long now = 1;

  @BeforeEach
  void fillArenas() {
    Random random = new Random(7);
    for (MemorySegment arena : manager.arenas) {
      for (long i = 0; i < arena.byteSize(); i += 8) {
        arena.set(ValueLayout.JAVA_LONG, i, random.nextLong());
      }
    }
    for (long i = 0; i < engine.byteSize(); i += 8) {
      engine.set(ValueLayout.JAVA_LONG, i, random.nextLong());
    }
  }

  /** Also of operations that a test leaves unfinished: the address may be another one's next. */
  @AfterEach
  void leaveClaims() {
    claims[0].release(IntStream.range(0, PAGES).toArray());
    claims[0].leave();
  }

  /** Three layers, keys and values apart, pages with a gap between them. */
  private GroupSpec spec() {
    List<GroupSpec.Segment> segments =
        List.of(new GroupSpec.Segment(0, KEY_BYTES), new GroupSpec.Segment(8192, VALUE_BYTES));
    List<GroupSpec.Layer> layers =
        List.of(
            new GroupSpec.Layer(engine, 0, 640, segments),
            new GroupSpec.Layer(engine, 65_536, 640, segments),
            new GroupSpec.Layer(engine, 131_072, 1024, segments));
    return new GroupSpec(0, GroupKind.PREFIX, 0, PAGES, layers);
  }

  private RestoreOperation restore(boolean verify, Fence fence, int... pages) {
    Lease lease = new Lease(77, FakeManager.EPOCH, 0, 0, pages.length);
    claims[0].claim(pages);
    Target.Builder target = new Target.Builder(groups, pages.length);
    target.add(0, pages);
    return new RestoreOperation(
        manager.session,
        new RestoreSpan(5, 6, List.of(RestoreItem.of(lease, pages))),
        fence,
        BOUND_NS,
        target.build(),
        manager.arenas,
        tools,
        claims,
        verify);
  }

  private PublishOperation publish(int... pages) {
    return publish(Fence.done(), pages);
  }

  private PublishOperation publish(Fence fence, int... pages) {
    Target.Builder target = new Target.Builder(groups, pages.length);
    target.add(0, pages);
    BlockHashes hashes = BlockHashes.of(new byte[16 * pages.length], 16);
    PublishItem item = new PublishItem(0, 0, null, hashes, pages);
    return new PublishOperation(
        manager.session,
        new PublishSpan(5, 6, 16, List.of(item)),
        budget.charge(SaveBudget.bytes(pages.length, 16, 1), 1),
        fence,
        BOUND_NS,
        target.build(),
        manager.arenas,
        tools);
  }

  private void run(EngineOperation operation) {
    for (int i = 0; i < 10_000; i++) {
      if (!operation.step(now)) {
        return;
      }
    }
    throw new AssertionError("operation never rests");
  }

  private void plan(int... pages) {
    for (int i = 0; i < pages.length; i++) {
      manager.plan(i, i % 2, 0, pages[i], i * 4096L, BLOCK_BYTES, crc(i % 2, i * 4096L));
    }
  }

  private int crc(int arena, long offset) {
    CRC32C crc = new CRC32C();
    crc.update(manager.arenas[arena].asSlice(offset, BLOCK_BYTES).asByteBuffer());
    return (int) crc.getValue();
  }

  private byte[] page(int page) {
    byte[] block = new byte[BLOCK_BYTES];
    int at = 0;
    for (GroupSpec.Layer layer : spec().layers()) {
      for (GroupSpec.Segment segment : layer.segments()) {
        long from = layer.offset() + page * layer.pageStride() + segment.offset();
        MemorySegment.copy(engine, ValueLayout.JAVA_BYTE, from, block, at, (int) segment.length());
        at += (int) segment.length();
      }
    }
    return block;
  }

  private byte[] block(int arena, long offset) {
    return manager.arenas[arena].asSlice(offset, BLOCK_BYTES).toArray(ValueLayout.JAVA_BYTE);
  }

  private void granted(EngineOperation operation, int... pages) {
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    plan(pages);
    manager.grant(operation.operationId(), pages.length);
  }

  private void assertPagesFree(int... pages) {
    claims[0].claim(pages);
    claims[0].release(pages);
  }

  @Test
  void shouldRestoreBytesLayerByLayer() {
    RestoreOperation operation = restore(true, Fence.done(), 3, 1, 4);
    run(operation);
    assertThat(manager.queries.tryRead(manager.command)).isTrue();
    assertThat(manager.command.opcode).isEqualTo(Opcode.RESTORE);
    assertThat(manager.command.scalar0).isEqualTo(operation.operationId());
    int length = manager.queryBytes.take(manager.command, manager.data);
    RestoreRequest request = new RestoreRequest().wrap(manager.data, 0, length);
    request.nextSection();
    assertThat(request.registrationId()).isEqualTo(5);
    assertThat(request.registrationGeneration()).isEqualTo(6);
    assertThat(request.leaseId()).isEqualTo(77);
    assertThat(request.page(0)).isEqualTo(3);
    manager.move(operation.operationId(), GrantState.PREPARING);
    plan(3, 1, 4);
    manager.grant(operation.operationId(), 3);
    for (int layer = 1; layer <= LAYERS; layer++) {
      while (operation.layersDone() < layer) {
        assertThat(operation.step(now)).isTrue();
      }
      assertThat(operation.layersDone()).isEqualTo(layer);
    }
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
    assertThat(operation.result().notDelivered().isEmpty()).isTrue();
    assertThat(page(3)).isEqualTo(block(0, 0));
    assertThat(page(1)).isEqualTo(block(1, 4096));
    assertThat(page(4)).isEqualTo(block(0, 8192));
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    assertThat(manager.table.entriesDone(GrantWord.slotOf(operation.operationId()))).isEqualTo(3);
    assertPagesFree(3, 1, 4);
    manager.reap(operation.operationId(), Status.OK, 0, 0, 0);
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACKNOWLEDGED);
    assertThat(operation.isSettled()).isTrue();
    assertThat(manager.session.freeSlots()).isEqualTo(GrantTable.RECORDS);
  }

  /** Grants the part that follows a drained one. */
  private void grantPart(EngineOperation operation, int part, int parts, int... pages) {
    int slot = GrantWord.slotOf(operation.operationId());
    plan(pages);
    manager.table.setPlan(slot, 0, pages.length, parts);
    long word = manager.table.wordAcquire(slot);
    assertThat(manager.table.tryManagerMove(slot, word, GrantState.GRANTED, part)).isTrue();
  }

  @Test
  void shouldRestorePartByPart() {
    RestoreOperation operation = restore(false, Fence.done(), 3, 1, 4);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    grantPart(operation, 0, 2, 3, 1);
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.PART_DRAINED);
    int slot = GrantWord.slotOf(operation.operationId());
    assertThat(manager.table.entriesDone(slot)).isEqualTo(2);
    assertThat(operation.isDone()).isFalse();
    assertThat(operation.pagesFree()).isFalse();
    assertThat(operation.layersDone()).as("layers that arrived in every page").isZero();
    grantPart(operation, 1, 2, 4);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
    assertThat(operation.layersDone()).isEqualTo(LAYERS);
    assertThat(manager.table.entriesDone(slot)).isEqualTo(3);
    assertThat(page(3)).isEqualTo(block(0, 0));
    assertThat(page(1)).isEqualTo(block(1, 4096));
    assertThat(page(4)).isEqualTo(block(0, 0));
    assertPagesFree(3, 1, 4);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void shouldStopBetweenParts(boolean sessionEnds) {
    RestoreOperation operation = restore(false, Fence.done(), 3, 1);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    grantPart(operation, 0, 2, 3);
    run(operation);
    if (sessionEnds) {
      manager.session.end("test");
    } else {
      operation.cancel(Status.CANCELLED, "test");
    }
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    assertThat(operation.result().status())
        .isEqualTo(sessionEnds ? Status.SESSION_ENDED : Status.CANCELLED);
    assertThat(operation.result().notDelivered().cardinality()).isEqualTo(1);
    assertThat(operation.result().notDelivered().get(1)).isTrue();
    assertPagesFree(3, 1);
  }

  @Test
  void shouldEndWhenTheManagerReapsBetweenParts() {
    RestoreOperation operation = restore(false, Fence.done(), 3, 1);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    grantPart(operation, 0, 2, 3);
    run(operation);
    manager.reap(operation.operationId(), Status.STOPPING, 0, 0, 0);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.STOPPING);
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldDrainALastPartThatLeavesBlocksOut() {
    RestoreOperation operation = restore(false, Fence.done(), 3, 1, 4);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    grantPart(operation, 0, 2, 3);
    run(operation);
    grantPart(operation, 1, 2, 1);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.COPY_FAILED);
    assertThat(operation.result().message()).contains("entries=1");
  }

  @Test
  void shouldPublishPartByPart() {
    PublishOperation operation = publish(6, 0, 2);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    grantPart(operation, 0, 2, 6);
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.PART_DRAINED);
    assertThat(block(0, 0)).isEqualTo(page(6));
    assertThat(operation.pagesFree()).isFalse();
    grantPart(operation, 1, 2, 2); // what is held already is left out
    run(operation);
    assertThat(block(0, 0)).isEqualTo(page(2));
    assertThat(operation.pagesFree()).isTrue();
    assertThat(manager.table.entriesDone(GrantWord.slotOf(operation.operationId()))).isEqualTo(2);
    manager.reap(operation.operationId(), Status.OK, 2, 1, 0);
    manager.answerPublish(
        operation.operationId(), PublishReply.STORED, PublishReply.HELD, PublishReply.STORED);
    run(operation);
    assertThat(operation.result().stored()).isEqualTo(2);
  }

  @Test
  void shouldTouchOnlyTheBytesOfItsPages() {
    byte[] before = engine.toArray(ValueLayout.JAVA_BYTE);
    RestoreOperation operation = restore(false, Fence.done(), 2);
    granted(operation, 2);
    run(operation);
    byte[] after = engine.toArray(ValueLayout.JAVA_BYTE);
    int differing = 0;
    for (int i = 0; i < after.length; i++) {
      differing += after[i] == before[i] ? 0 : 1;
    }
    assertThat(differing).isBetween(BLOCK_BYTES / 2, BLOCK_BYTES);
    assertThat(page(1)).isNotEqualTo(block(0, 0));
    assertThat(page(2)).isEqualTo(block(0, 0));
  }

  @Test
  void shouldMergeNeighboursOfContiguousPages() {
    GroupMemory flat = GroupMemory.of(GroupSpec.contiguous(engine, 4096, PAGES), true);
    Target.Builder target = new Target.Builder(new GroupMemory[] {flat}, 3);
    target.add(0, new int[] {2, 3, 5});
    RestoreOperation operation = restore(false, Fence.done(), 2, 3, 5);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    for (int i = 0; i < 3; i++) {
      manager.plan(i, 0, 0, new int[] {2, 3, 5}[i], i * 4096L, 4096, 0);
    }
    manager.table.setPlan(GrantWord.slotOf(operation.operationId()), 0, 3, 1);
    Plan plan =
        Plan.read(
            manager.table,
            GrantWord.slotOf(operation.operationId()),
            target.build(),
            manager.arenas,
            0,
            0,
            true);
    RestoreCopy copy =
        new RestoreCopy(
            plan, target.build(), manager.arenas, tools.take(), false, manager.table.memory());
    assertThat(copy.step()).isFalse();
    assertThat(copy.bytes()).isEqualTo(3 * 4096);
    assertThat(engine.asSlice(2 * 4096, 8192).mismatch(manager.arenas[0].asSlice(0, 8192)))
        .isEqualTo(-1);
    assertThat(engine.asSlice(5 * 4096, 4096).mismatch(manager.arenas[0].asSlice(8192, 4096)))
        .isEqualTo(-1);
  }

  @Test
  void shouldPublishBytesWithTheirSums() {
    PublishOperation operation = publish(6, 0);
    run(operation);
    assertThat(manager.publishes.tryRead(manager.command)).isTrue();
    int length = manager.publishBytes.take(manager.command, manager.data);
    PublishRequest request = new PublishRequest().wrap(manager.data, 0, length);
    request.nextSection();
    assertThat(request.page(1)).isZero();
    manager.move(operation.operationId(), GrantState.PREPARING);
    plan(6, 0);
    manager.grant(operation.operationId(), 2);
    run(operation);
    assertThat(operation.isDone()).isFalse();
    assertThat(operation.pagesFree()).isTrue();
    assertThat(block(0, 0)).isEqualTo(page(6));
    assertThat(block(1, 4096)).isEqualTo(page(0));
    assertThat(manager.crc(0)).isEqualTo(crc(0, 0));
    assertThat(manager.crc(1)).isEqualTo(crc(1, 4096));
    manager.reap(operation.operationId(), Status.OK, 1, 1, 0);
    manager.answerPublish(operation.operationId(), PublishReply.STORED, PublishReply.HELD);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
    assertThat(operation.result().stored()).isEqualTo(1);
    assertThat(operation.result().blocks())
        .containsExactly(PublishResult.Block.STORED, PublishResult.Block.HELD);
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldPublishWhatIsNotHeldYet() {
    PublishOperation operation = publish(6, 0, 2);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    plan(0);
    manager.grant(operation.operationId(), 1);
    run(operation);
    assertThat(block(0, 0)).isEqualTo(page(0));
    manager.reap(operation.operationId(), Status.OK, 1, 2, 0);
    run(operation);
    assertThat(operation.isDone()).as("the answer may still come").isFalse();
    now += 10_000_000;
    run(operation);
    assertThat(operation.result().stored()).isEqualTo(1);
    assertThat(operation.result().held()).isEqualTo(2);
    assertThat(operation.result().blocks()).as("the answer was lost").isEmpty();
  }

  @Test
  void shouldBeChargedUntilItIsSettled() {
    PublishOperation operation = publish(1, 2);
    assertThat(budget.operations()).isEqualTo(1);
    assertThat(budget.bytes()).isEqualTo(SaveBudget.bytes(2, 16, 1));
    granted(operation, 1, 2);
    run(operation);
    assertThat(budget.operations()).isEqualTo(1);
    manager.reap(operation.operationId(), Status.OK, 2, 0, 0);
    run(operation);
    assertThat(budget.operations()).isZero();
    assertThat(budget.bytes()).isZero();
  }

  @Test
  void shouldTellOfPublishesWhileTheirDriverIsStuck() throws InterruptedException {
    CountDownLatch stuck = new CountDownLatch(1);
    CountDownLatch over = new CountDownLatch(1);
    ReentrantLock replies = (ReentrantLock) StateHash.field(manager.session, "publishReplyLock");
    PublishOperation[] driven = new PublishOperation[1];
    boolean[] asked = new boolean[1];
    Fence fence =
        () -> {
          replies.lock(); // whatever a driver may hold
          try {
            synchronized (driven[0]) {
              stuck.countDown();
              asked[0] = over.await(20, TimeUnit.SECONDS);
            }
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          } finally {
            replies.unlock();
          }
          return true;
        };
    PublishOperation first = publish(fence, 1);
    driven[0] = first;
    PublishOperation second = publish(2);
    granted(second, 2);
    now = 50;
    run(first);
    manager.move(first.operationId(), GrantState.PREPARING);
    manager.grant(first.operationId(), 1);
    Thread driver = Thread.ofPlatform().daemon().start(() -> run(first));
    assertThat(stuck.await(20, TimeUnit.SECONDS)).isTrue();
    assertThat(manager.session.publishActivity(1050, 1000, true))
        .isEqualTo(new PublishActivity(2, 0, 1049, 1, true));
    manager.session.end("test");
    run(second);
    assertThat(manager.session.publishActivity(2050, 1000, false))
        .isEqualTo(new PublishActivity(1, 1, 2000, 1, false));
    over.countDown();
    driver.join();
    assertThat(asked[0]).as("asked while the driver was stuck").isTrue();
    run(first);
    assertThat(manager.session.publishActivity(2050, 1000, false))
        .isEqualTo(new PublishActivity(0, 0, 0, 0, false));
  }

  @Test
  void shouldNotNeedTheAnswerWhenCountsTell() {
    PublishOperation operation = publish(1);
    granted(operation, 1);
    run(operation);
    manager.reap(operation.operationId(), Status.OK, 1, 0, 0);
    run(operation);
    assertThat(operation.result().blocks()).containsExactly(PublishResult.Block.STORED);
  }

  @Test
  void shouldCopyBehindItsFenceOnly() {
    boolean[] fence = {false};
    RestoreOperation operation = restore(false, () -> fence[0], 1);
    granted(operation, 1);
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.GRANTED);
    assertThat(operation.awaitsFence()).isTrue();
    fence[0] = true;
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
  }

  @Test
  void shouldCancelReservedAndGiveItsLeasesBack() {
    RestoreOperation operation = restore(false, Fence.done(), 1);
    run(operation);
    operation.cancel(Status.CANCELLED, "test");
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACKNOWLEDGED);
    assertThat(operation.result().status()).isEqualTo(Status.CANCELLED);
    assertThat(operation.result().notDelivered().get(0)).isTrue();
    assertThat(manager.queries.tryRead(manager.command)).isTrue();
    assertThat(manager.queries.tryRead(manager.command)).isTrue();
    assertThat(manager.command.opcode).isEqualTo(Opcode.RELEASE);
    assertThat(manager.command.scalar0).isEqualTo(77);
    assertPagesFree(1);
  }

  @Test
  void shouldCancelPreparing() {
    RestoreOperation operation = restore(false, Fence.done(), 1);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    operation.cancel(Status.CANCELLED, "test");
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.CANCEL_REQUESTED);
    assertThat(operation.result().status()).isEqualTo(Status.CANCELLED);
    assertPagesFree(1);
    assertThat(operation.isSettled()).isFalse();
    manager.reap(operation.operationId(), Status.CANCELLED, 0, 0, 0);
    run(operation);
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldCancelGrantedWithoutACopy() {
    byte[] before = page(1);
    RestoreOperation operation = restore(false, () -> false, 1);
    granted(operation, 1);
    operation.cancel(Status.CANCELLED, "test");
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    assertThat(operation.result().status()).isEqualTo(Status.CANCELLED);
    assertThat(page(1)).isEqualTo(before);
    assertThat(manager.table.engineStatus(GrantWord.slotOf(operation.operationId())))
        .isEqualTo(Status.CANCELLED);
  }

  @Test
  void shouldStopActiveBetweenLayers() {
    RestoreOperation operation = restore(false, Fence.done(), 1);
    granted(operation, 1);
    while (operation.layersDone() < 1) {
      operation.step(now);
    }
    assertThat(operation.pagesFree()).isFalse();
    operation.cancel(Status.CANCELLED, "test");
    run(operation);
    assertThat(operation.layersDone()).isEqualTo(1);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    assertThat(operation.result().status()).isEqualTo(Status.CANCELLED);
    assertThat(operation.result().notDelivered().get(0)).isTrue();
    assertPagesFree(1);
  }

  @Test
  void shouldCancelAnUnclaimedCommandAtItsBound() {
    RestoreOperation operation = restore(false, Fence.done(), 1);
    run(operation);
    now += 2 * BOUND_NS;
    run(operation);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.CANCELLED);
    assertThat(operation.result().message()).contains("not claimed");
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACKNOWLEDGED);
  }

  @ParameterizedTest
  @ValueSource(strings = {"RESERVED", "PREPARING", "GRANTED"})
  void shouldEndWithTheSession(String state) {
    RestoreOperation operation = restore(false, () -> false, 1);
    run(operation);
    if (!state.equals("RESERVED")) {
      manager.move(operation.operationId(), GrantState.PREPARING);
    }
    if (state.equals("GRANTED")) {
      plan(1);
      manager.grant(operation.operationId(), 1);
    }
    manager.closeSession();
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.SESSION_ENDED);
    assertThat(operation.isSettled()).isTrue();
    assertThat(manager.session.isIdle()).isTrue();
    assertPagesFree(1);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void shouldSayThatTheSessionEndedBeforeItWasSubmitted(boolean restores) {
    EngineOperation operation = restores ? restore(false, Fence.done(), 1) : publish(1);
    now = 3 * BOUND_NS; // as on a machine that has run for a while
    manager.session.end("test");
    run(operation);
    assertThat(operation.isNeverBegun()).isTrue();
    assertThat(operation.isSettled()).isTrue();
    assertThat(operation.isSubmitted()).isFalse();
    if (operation instanceof RestoreOperation restore) {
      assertThat(restore.result().status()).isEqualTo(Status.SESSION_ENDED);
      assertThat(restore.result().message()).contains("test");
    } else if (operation instanceof PublishOperation publish) {
      assertThat(publish.result().status()).isEqualTo(Status.SESSION_ENDED);
      assertThat(publish.result().message()).contains("test");
    }
    assertPagesFree(1);
  }

  @Test
  void shouldBeOverWhenItsMemoryIsUnmapped() {
    EngineSession session;
    try (Arena arena = Arena.ofShared()) {
      MemorySegment channel = arena.allocate(ChannelDescriptor.REGION_BYTES, 4096);
      ChannelDescriptor.format(channel, 0, FakeManager.EPOCH, 0);
      session = new FakeManager(channel, manager.table).session;
      assertThat(session.isOver()).isFalse();
    }
    assertThat(session.isOver()).isTrue();
    assertThat(session.overReason()).isEqualTo("its memory is unmapped");
  }

  @Test
  void shouldGiveItsChargeBackBeforeTheSessionIsIdle() throws InterruptedException {
    PublishOperation operation = publish(1);
    run(operation);
    operation.cancel(Status.CANCELLED, "test");
    Thread driver = Thread.ofPlatform().daemon().unstarted(() -> run(operation));
    synchronized (StateHash.field(manager.session, "freeSlots")) { // it can not give its slot back
      driver.start();
      long began = System.nanoTime();
      while (!manager.session.isIdle()) {
        assertThat(System.nanoTime() - began).isLessThan(20 * BOUND_NS);
        Thread.onSpinWait();
      }
      assertThat(budget.operations()).isZero();
    }
    driver.join();
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldFinishACopyThatTheSessionEndsUnder() {
    RestoreOperation operation = restore(false, Fence.done(), 1);
    granted(operation, 1);
    while (operation.layersDone() < 1) {
      operation.step(now);
    }
    manager.session.end("test");
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.OK);
    assertThat(page(1)).isEqualTo(block(0, 0));
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldEndADrainedPublishAsUnknownWithTheSession() {
    PublishOperation operation = publish(1);
    granted(operation, 1);
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    manager.session.end("test");
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.SESSION_ENDED);
    assertThat(operation.result().message()).contains("unknown");
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldEndRevokedAsRefused() {
    RestoreOperation operation = restore(false, () -> false, 1);
    granted(operation, 1);
    manager.table.setOutcome(
        GrantWord.slotOf(operation.operationId()), Status.STALE_REGISTRATION, 0, 0, 0, "gone");
    manager.move(operation.operationId(), GrantState.REVOKED);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.STALE_REGISTRATION);
    assertThat(operation.result().message()).isEqualTo("gone");
    assertPagesFree(1);
    manager.move(operation.operationId(), GrantState.REAPED);
    run(operation);
    assertThat(operation.isSettled()).isTrue();
  }

  @Test
  void shouldLoseToARevokeBeforeActive() {
    byte[] before = page(1);
    RestoreOperation operation = restore(false, Fence.done(), 1);
    granted(operation, 1);
    operation.step(now); // sees Granted, is about to claim
    manager.table.setOutcome(
        GrantWord.slotOf(operation.operationId()), Status.STOPPING, 0, 0, 0, "");
    manager.move(operation.operationId(), GrantState.REVOKED);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.STOPPING);
    assertThat(page(1)).isEqualTo(before);
  }

  @Test
  void shouldReportARefusalFromTheRecord() {
    PublishOperation operation = publish(1, 2);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    manager.reap(operation.operationId(), Status.POOL_FULL, 0, 0, 2);
    manager.answerPublish(
        operation.operationId(), PublishReply.REFUSED_POOL_FULL, PublishReply.REFUSED_POOL_FULL);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.POOL_FULL);
    assertThat(operation.result().refused()).isEqualTo(2);
    assertThat(operation.result().blocks())
        .containsExactly(PublishResult.Block.REFUSED, PublishResult.Block.REFUSED);
  }

  @Test
  void shouldNotMoveARecordOfAnotherGeneration() {
    RestoreOperation operation = restore(false, Fence.done(), 1);
    run(operation);
    int slot = GrantWord.slotOf(operation.operationId());
    long foreign =
        GrantWord.of(GrantWord.generationOf(operation.operationId()) + 1, 0, GrantState.GRANTED);
    assertThat(
            Memory.compareAndSetLong(
                manager.table.memory(),
                512 + 192L * slot,
                manager.table.wordAcquire(slot),
                foreign))
        .isTrue();
    run(operation);
    assertThat(operation.isDone()).isFalse();
    operation.cancel(Status.CANCELLED, "test");
    run(operation);
    assertThat(manager.table.wordAcquire(slot)).isEqualTo(foreign);
    assertThat(operation.result().status()).isEqualTo(Status.INTERNAL);
    assertThat(manager.session.freeSlots()).isEqualTo(GrantTable.RECORDS - 1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"arena", "group", "page", "offset", "negative", "length", "entries", "bank"})
  void shouldDrainAHostilePlanWithoutTouchingMemory(String hostile) {
    byte[] before = engine.toArray(ValueLayout.JAVA_BYTE);
    RestoreOperation operation = restore(false, Fence.done(), 1);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    manager.plan(
        0,
        hostile.equals("arena") ? 2 : 0,
        hostile.equals("group") ? 9 : 0,
        hostile.equals("page") ? 2 : 1,
        switch (hostile) {
          case "offset" -> FakeManager.ARENA_BYTES - BLOCK_BYTES + 1L;
          case "negative" -> -8L;
          default -> 0;
        },
        hostile.equals("length") ? BLOCK_BYTES + 8 : BLOCK_BYTES,
        0);
    int entries = hostile.equals("entries") ? 0 : 1;
    int offset = hostile.equals("bank") ? GrantTable.BANK_BYTES - 8 : 0;
    manager.table.setPlan(GrantWord.slotOf(operation.operationId()), offset, entries, 1);
    manager.move(operation.operationId(), GrantState.GRANTED);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.COPY_FAILED);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    assertThat(engine.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(before);
  }

  @Test
  void shouldNotDeliverABlockWhoseSumDiffers() {
    byte[] before = page(4);
    RestoreOperation operation = restore(true, Fence.done(), 3, 4);
    run(operation);
    manager.move(operation.operationId(), GrantState.PREPARING);
    plan(3, 4);
    manager.plan(1, 1, 0, 4, 4096, BLOCK_BYTES, crc(1, 4096) + 1);
    manager.grant(operation.operationId(), 2);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.COPY_FAILED);
    assertThat(operation.result().message()).contains("page=4");
    assertThat(operation.result().notDelivered().cardinality()).isEqualTo(1);
    assertThat(operation.result().notDelivered().get(1)).isTrue();
    assertThat(page(3)).isEqualTo(block(0, 0));
    assertThat(page(4)).isEqualTo(before);
    assertThat(sumInPlan(0)).isEqualTo(crc(0, 0));
    assertThat(sumInPlan(1)).as("what was found, for the Manager").isEqualTo(crc(1, 4096));
  }

  private int sumInPlan(int entry) {
    return PlanEntry.crc(
        manager.table.memory(), GrantTable.bankAt(0) + (long) entry * PlanEntry.BYTES);
  }

  @Test
  void shouldSubmitNothingOnAFullRing() {
    while (manager.session.trySubmit(0, Opcode.PING, 1, 0, 0, null)) {
      assertThat(manager.session.isOver()).isFalse();
    }
    RestoreOperation operation = restore(false, Fence.done(), 1);
    run(operation);
    assertThat(operation.result().status()).isEqualTo(Status.LIMIT);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACKNOWLEDGED);
    assertThat(manager.session.freeSlots()).isEqualTo(GrantTable.RECORDS);
    assertPagesFree(1);
  }

  @Test
  void shouldRefuseTargetsOfAnUnfinishedRestore() {
    RestoreOperation operation = restore(false, Fence.done(), 1, 2);
    run(operation);
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> claims[0].claim(new int[] {5, 2}))
        .isInstanceOf(OrbitKvException.class)
        .hasMessage("page=2 is target of an unfinished restore");
    org.assertj.core.api.Assertions.assertThatThrownBy(
            () -> claims[0].requireUnclaimed(new int[] {1}))
        .isInstanceOf(OrbitKvException.class);
    assertPagesFree(5);
  }
}
