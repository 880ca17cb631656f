package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.Status;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Plays one publish and one restore in memory of its own, with the Manager's moves, so that the
 * classes of both are loaded before the first request needs them: in a new JVM that costs tens of
 * milliseconds. No Manager takes part.
 */
public final class Rehearsal {
  private static final long EPOCH = 1;
  private static final int BLOCK_BYTES = 4096;
  private static final int HASH_BYTES = 32;
  private static final int[] PAGE = {0};
  private static final long BOUND_NS = 1_000_000_000;
  private static final int MAX_STEPS = 1000;

  private final GrantTable table;
  private final EngineSession session;
  private final GroupMemory[] groups;
  private final PageClaims[] claims;
  private final MemorySegment[] arenas;
  private final CopyTools.Pool tools;

  private Rehearsal(
      MemorySegment channel, MemorySegment grants, MemorySegment pages, MemorySegment arena) {
    ChannelDescriptor.format(channel, 0, EPOCH, 0);
    table = GrantTable.format(grants);
    session = new EngineSession(channel, table, EPOCH, () -> {});
    groups = new GroupMemory[] {GroupMemory.of(GroupSpec.contiguous(pages, BLOCK_BYTES, 1), true)};
    claims = new PageClaims[] {PageClaims.enter(groups[0].address())};
    arenas = new MemorySegment[] {arena};
    tools = new CopyTools.Pool(arenas);
  }

  /**
   * Plays both once.
   *
   * @return true when both ended well
   */
  public static boolean play() {
    try (Mapping channel = memory(ChannelDescriptor.REGION_BYTES);
        Mapping grants = memory(GrantTable.REGION_BYTES);
        Mapping pages = memory(BLOCK_BYTES);
        Mapping arena = memory(BLOCK_BYTES)) {
      Rehearsal rehearsal =
          new Rehearsal(channel.segment(), grants.segment(), pages.segment(), arena.segment());
      try {
        return rehearsal.publish() && rehearsal.restore();
      } finally {
        rehearsal.claims[0].leave();
      }
    }
  }

  /** Memory of which only what is touched is there, and which leaves nothing in the C heap. */
  private static Mapping memory(long bytes) {
    try (Fd fd = Memfd.create("orbitkv-rehearsal", bytes, Memfd.PageSize.NORMAL)) {
      return Mapping.map(fd, bytes, Mapping.Access.READ_WRITE, false);
    }
  }

  private boolean publish() {
    BlockHashes hashes = BlockHashes.of(new byte[HASH_BYTES], HASH_BYTES);
    PublishSpan span =
        new PublishSpan(0, 1, HASH_BYTES, List.of(new PublishItem(0, 0, null, hashes, PAGE)));
    SaveBudget.Charge charge = new SaveBudget().charge(SaveBudget.bytes(1, HASH_BYTES, 1), 1);
    PublishOperation operation =
        new PublishOperation(
            session, span, charge, Fence.done(), BOUND_NS, target(), arenas, tools);
    perform(operation, 1);
    return operation.result() != null && operation.result().status() == Status.OK;
  }

  private boolean restore() {
    claims[0].claim(PAGE);
    RestoreSpan span =
        new RestoreSpan(0, 1, List.of(RestoreItem.of(new Lease(1, EPOCH, 0, 0, 1), PAGE)));
    RestoreOperation operation =
        new RestoreOperation(
            session, span, Fence.done(), BOUND_NS, target(), arenas, tools, claims, false);
    perform(operation, 0);
    return operation.result() != null && operation.result().status() == Status.OK;
  }

  private Target target() {
    Target.Builder target = new Target.Builder(groups, 1);
    target.add(0, PAGE);
    return target.build();
  }

  /** Submits, grants, copies, reaps and settles. */
  private void perform(EngineOperation operation, int stored) {
    run(operation);
    int slot = GrantWord.slotOf(operation.operationId());
    move(slot, GrantState.PREPARING);
    PlanEntry.put(table.memory(), GrantTable.bankAt(0), 0, 0, 0, 1, 0, BLOCK_BYTES, 0);
    table.setPlan(slot, 0, 1, 1);
    move(slot, GrantState.GRANTED);
    run(operation);
    table.setOutcome(slot, Status.OK, stored, 0, 0, "");
    move(slot, GrantState.REAPED);
    run(operation);
  }

  private void move(int slot, GrantState next) {
    if (!table.tryManagerMove(slot, table.wordAcquire(slot), next)) {
      throw new IllegalStateException("rehearsal: no move to " + next);
    }
  }

  private static void run(EngineOperation operation) {
    for (int i = 0; i < MAX_STEPS && operation.step(System.nanoTime()); i++) {
      Thread.onSpinWait();
    }
  }
}
