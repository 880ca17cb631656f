package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.GroupKind;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies with which other threads help: of a few large blocks and of many small ones. */
@ParameterizedClass(name = "{1} blocks of {0} bytes")
@CsvSource({"262144, 24", "512, 8192"})
class SharedCopyTest {
  private static final long BOUND_NS = 1_000_000_000;
  private static final int LAYERS = 2;

  /** Bytes of a share of a publish, of either size of blocks. */
  private static final int PUBLISH_SHARE_BYTES = 256 << 10;

  private final int blockBytes;
  private final int layerBytes;
  private final int blocks;
  private final int pageCount;
  private final FakeManager manager = new FakeManager();
  private final Arena ownMemory = Arena.ofConfined();
  private final MemorySegment engine;
  private final GroupMemory group;
  private final PageClaims claims;
  private final CopyTools.Pool tools = new CopyTools.Pool(manager.arenas);
  private final SaveBudget budget = new SaveBudget();
  private final Random random = new Random(11);
  private final int[] pages;

  /** Block whose sum in the plan is wrong. */
  private int damaged = -1;

  SharedCopyTest(int blockBytes, int blocks) {
    this.blockBytes = blockBytes;
    this.layerBytes = blockBytes / LAYERS;
    this.blocks = blocks;
    this.pageCount = blocks + 8;
    this.engine = Arena.ofAuto().allocate((long) pageCount * blockBytes, 4096);
    this.group = GroupMemory.of(spec(engine), true);
    this.claims = PageClaims.enter(group.address());
    this.pages = random.ints(0, pageCount).distinct().limit(blocks).toArray();
  }

  @BeforeEach
  void fillMemory() {
    fill(engine);
    for (MemorySegment arena : manager.arenas) {
      fill(arena);
    }
  }

  @AfterEach
  void endMemory() {
    claims.leave();
    ownMemory.close();
  }

  private void fill(MemorySegment memory) {
    for (long i = 0; i < memory.byteSize(); i += 8) {
      memory.set(ValueLayout.JAVA_LONG, i, random.nextLong());
    }
  }

  private GroupSpec spec(MemorySegment memory) {
    List<GroupSpec.Layer> layers = new ArrayList<>();
    for (int i = 0; i < LAYERS; i++) {
      long offset = (long) i * pageCount * layerBytes;
      layers.add(
          new GroupSpec.Layer(
              memory, offset, layerBytes, List.of(new GroupSpec.Segment(0, layerBytes))));
    }
    return new GroupSpec(0, GroupKind.PREFIX, 0, pageCount, layers);
  }

  private Target target(GroupMemory memory) {
    Target.Builder target = new Target.Builder(new GroupMemory[] {memory}, blocks);
    target.add(0, pages);
    return target.build();
  }

  private EngineOperation submit(int kind, GroupMemory memory) {
    return submit(kind == GrantTable.RESTORE ? restore(memory) : publish(memory));
  }

  private EngineOperation submit(EngineOperation operation) {
    run(operation);
    boolean isRestore = operation instanceof RestoreOperation;
    CommandRing.Consumer commands = isRestore ? manager.queries : manager.publishes;
    assertThat(commands.tryRead(manager.command)).isTrue();
    (isRestore ? manager.queryBytes : manager.publishBytes).take(manager.command, manager.data);
    return operation;
  }

  private RestoreOperation restore(GroupMemory memory) {
    return restore(memory, false);
  }

  private RestoreOperation restore(GroupMemory memory, boolean verify) {
    claims.claim(pages);
    Lease lease = new Lease(77, FakeManager.EPOCH, 0, 0, blocks);
    return new RestoreOperation(
        manager.session,
        new RestoreSpan(5, 6, List.of(RestoreItem.of(lease, pages))),
        Fence.done(),
        BOUND_NS,
        target(memory),
        manager.arenas,
        tools,
        new PageClaims[] {claims},
        verify);
  }

  private PublishOperation publish(GroupMemory memory) {
    BlockHashes hashes = BlockHashes.of(new byte[16 * blocks], 16);
    return new PublishOperation(
        manager.session,
        new PublishSpan(5, 6, 16, List.of(new PublishItem(0, 0, null, hashes, pages))),
        budget.charge(SaveBudget.bytes(blocks, 16, 1), 1),
        Fence.done(),
        BOUND_NS,
        target(memory),
        manager.arenas,
        tools);
  }

  /** Grants it; steps it until it calls for help. */
  private void grant(EngineOperation operation) {
    grant(operation, 1);
  }

  private void grant(EngineOperation operation, int parts) {
    manager.move(operation.operationId(), GrantState.PREPARING);
    writePlan();
    manager.table.setPlan(GrantWord.slotOf(operation.operationId()), 0, blocks, parts);
    manager.move(operation.operationId(), GrantState.GRANTED);
    for (int i = 0; !operation.takeCallForHelp(); i++) {
      assertThat(i).isLessThan(2 * blocks);
      assertThat(operation.step(1)).isTrue();
    }
    assertThat(operation.hasShares()).isTrue();
  }

  private void writePlan() {
    for (int i = 0; i < blocks; i++) {
      manager.plan(
          i, arena(i), 0, pages[i], offset(i), blockBytes, i == damaged ? ~sum(i) : sum(i));
    }
  }

  private int sum(int block) {
    CRC32C crc = new CRC32C();
    crc.update(inPool(block).asByteBuffer());
    return (int) crc.getValue();
  }

  private int arena(int block) {
    return block / blocksAnArena();
  }

  private int blocksAnArena() {
    return blocks / manager.arenas.length;
  }

  private long offset(int block) {
    return (long) (block % blocksAnArena()) * blockBytes;
  }

  private static void run(EngineOperation operation) {
    for (int i = 0; i < 10_000; i++) {
      if (!operation.step(1)) {
        return;
      }
    }
    throw new AssertionError("operation never rests");
  }

  private MemorySegment inPool(int block) {
    return manager.arenas[arena(block)].asSlice(offset(block), blockBytes);
  }

  private boolean isSame(int block) {
    MemorySegment pool = inPool(block);
    for (int layer = 0; layer < LAYERS; layer++) {
      long at = (long) (layer * pageCount + pages[block]) * layerBytes;
      MemorySegment page = engine.asSlice(at, layerBytes);
      if (page.mismatch(pool.asSlice((long) layer * layerBytes, layerBytes)) != -1) {
        return false;
      }
    }
    return true;
  }

  private void assertCopied(EngineOperation operation, int kind) {
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    int slot = GrantWord.slotOf(operation.operationId());
    assertThat(manager.table.entriesDone(slot)).isEqualTo(blocks);
    for (int i = 0; i < blocks; i++) {
      assertThat(isSame(i)).as("block %s", i).isTrue();
      if (kind == GrantTable.PUBLISH) {
        assertThat(manager.crc(i)).isEqualTo(sum(i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {GrantTable.RESTORE, GrantTable.PUBLISH})
  void shouldCopyEachShareOnce(int kind) {
    EngineOperation operation = submit(kind, group);
    grant(operation);
    int helped = 0;
    while (operation.hasShares()) {
      if (random.nextBoolean()) {
        operation.step(1);
      } else if (operation.help()) {
        helped++;
      }
    }
    assertThat(operation.help()).isFalse();
    run(operation);
    assertThat(helped).isPositive();
    assertCopied(operation, kind);
  }

  @ParameterizedTest
  @ValueSource(ints = {GrantTable.RESTORE, GrantTable.PUBLISH})
  void shouldEndWhenHelpersDidAllTheRest(int kind) {
    EngineOperation operation = submit(kind, group);
    grant(operation);
    while (operation.hasShares()) {
      assertThat(operation.help()).isTrue();
    }
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.ACTIVE);
    if (operation instanceof RestoreOperation restore) { // without a word of the driver
      assertThat(restore.layersDone()).isEqualTo(LAYERS);
    }
    run(operation);
    assertCopied(operation, kind);
  }

  @Test
  void shouldTellOfNoLayerBeforeTheLastPart() {
    RestoreOperation operation = restore(group);
    submit(operation);
    grant(operation, 2);
    helpToTheEnd(operation);
    assertThat(operation.layersDone()).isZero();
  }

  @Test
  void shouldTellOfNoLayerThatLacksABlock() {
    RestoreOperation operation = restore(group, true);
    submit(operation);
    damaged = blocks - 1;
    grant(operation);
    helpToTheEnd(operation);
    assertThat(operation.layersDone()).isZero();
  }

  private static void helpToTheEnd(EngineOperation operation) {
    while (operation.hasShares()) {
      assertThat(operation.help()).isTrue();
    }
  }

  @Test
  void shouldStayOpenUntilTheLastHelperHasLeft() {
    EngineOperation operation = submit(GrantTable.PUBLISH, group);
    manager.move(operation.operationId(), GrantState.PREPARING);
    writePlan();
    int slot = GrantWord.slotOf(operation.operationId());
    manager.table.setPlan(slot, 0, blocks, 1);
    Plan plan = Plan.read(manager.table, slot, target(group), manager.arenas, 0, 0, false);
    CopyWork copy =
        new PublishCopy(plan, target(group), manager.arenas, tools.take(), manager.table.memory());
    assertThat(copy.enter()).isTrue();
    assertThat(copy.enter()).isTrue();
    int shares = (int) ((long) blocks * blockBytes / PUBLISH_SHARE_BYTES);
    for (int i = 1; i < shares; i++) {
      assertThat(copy.step()).isTrue();
      assertThat(copy.endsSoon()).isEqualTo((shares - i) * PUBLISH_SHARE_BYTES <= 1 << 20);
    }
    assertThat(copy.step()).isFalse();
    assertThat(copy.close()).isFalse();
    copy.leave();
    assertThat(copy.close()).isFalse();
    assertThat(copy.enter()).isFalse();
    copy.leave();
    assertThat(copy.close()).isTrue();
    assertThat(copy.help(tools, operation)).isFalse();
    assertThat(copy.entriesDone()).isEqualTo(blocks);
  }

  @Test
  void shouldClaimNothingOnceClosed() {
    EngineOperation operation = submit(GrantTable.RESTORE, group);
    grant(operation);
    operation.cancel(Status.CANCELLED, "cancelled by the test");
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    assertThat(operation.hasShares()).isFalse();
    assertThat(operation.help()).isFalse();
    assertThat(isSame(blocks - 1)).isFalse();
  }

  @Test
  void shouldFailWithItsHelper() throws InterruptedException {
    MemorySegment confined = ownMemory.allocate((long) pageCount * blockBytes, 4096);
    EngineOperation operation = submit(GrantTable.RESTORE, GroupMemory.of(spec(confined), true));
    grant(operation);
    Thread helper = new Thread(operation::help); // may not touch memory of this thread
    helper.start();
    helper.join();
    assertThat(operation.hasShares()).isFalse();
    run(operation);
    assertThat(manager.state(operation.operationId())).isEqualTo(GrantState.DRAINED);
    RestoreResult result = ((RestoreOperation) operation).result();
    assertThat(result.status()).isEqualTo(Status.COPY_FAILED);
    assertThat(result.message()).contains("copy failed", "thread");
  }

  /** Whoever is told that the copy has ended may use the memory for something else at once. */
  @ParameterizedTest
  @ValueSource(ints = {GrantTable.RESTORE, GrantTable.PUBLISH})
  void shouldTouchNoMemoryOnceDrained(int kind) throws InterruptedException {
    AtomicReference<EngineOperation> current = new AtomicReference<>();
    List<Thread> helpers = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      Thread helper = new Thread(() -> helpUntilNull(current));
      helpers.add(helper);
    }
    MemorySegment[] written =
        kind == GrantTable.RESTORE ? new MemorySegment[] {engine} : manager.arenas;
    for (int round = 0; round < 100; round++) {
      EngineOperation operation = submit(kind, group);
      grant(operation);
      current.set(operation);
      if (round == 0) {
        helpers.forEach(Thread::start);
      }
      while (manager.state(operation.operationId()) == GrantState.ACTIVE) {
        operation.step(1);
      }
      for (MemorySegment memory : written) {
        memory.fill((byte) round);
      }
      manager.reap(operation.operationId(), Status.OK, blocks, 0, 0);
      run(operation);
      assertThat(operation.isSettled()).isTrue();
      for (MemorySegment memory : written) {
        assertThat(isFilled(memory, (byte) round)).as("round %s", round).isTrue();
      }
    }
    current.set(null);
    for (Thread helper : helpers) {
      helper.join();
    }
  }

  private static void helpUntilNull(AtomicReference<EngineOperation> current) {
    EngineOperation operation = current.get();
    while (operation != null) {
      if (!operation.help()) {
        Thread.onSpinWait();
      }
      operation = current.get();
    }
  }

  private static boolean isFilled(MemorySegment memory, byte value) {
    long word = 0x0101_0101_0101_0101L * (value & 0xff);
    for (long i = 0; i < memory.byteSize(); i += 8) {
      if (memory.get(ValueLayout.JAVA_LONG, i) != word) {
        return false;
      }
    }
    return true;
  }
}
