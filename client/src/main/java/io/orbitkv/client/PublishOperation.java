package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.PublishReply;
import io.orbitkv.channel.Status;
import io.orbitkv.client.PublishResult.Block;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Engine side of one Publish; it is over for the caller once the Manager has reaped it. */
final class PublishOperation extends EngineOperation {
  /** How long a reaped publish waits for the results of its blocks where counts do not tell. */
  private static final long REPLY_WAIT_NS = 2_000_000;

  private final EngineSession session;
  private final PublishSpan span;
  private final SaveBudget.Charge charge;

  private volatile byte[] results;
  private long reapedNs;
  private volatile PublishResult result;

  PublishOperation(
      EngineSession session,
      PublishSpan span,
      SaveBudget.Charge charge,
      Fence fence,
      long claimBoundNs,
      Target target,
      MemorySegment[] arenas,
      CopyTools.Pool toolsPool) {
    super(session, GrantTable.PUBLISH, fence, claimBoundNs, target, arenas, toolsPool);
    this.session = session;
    this.span = span;
    this.charge = charge;
  }

  SaveBudget.Charge charge() {
    return charge;
  }

  /** How it ended; null while it is pending. */
  PublishResult result() {
    return result;
  }

  @Override
  int ring() {
    return ChannelDescriptor.PUBLISH_REQUESTS;
  }

  @Override
  int opcode() {
    return Opcode.PUBLISH;
  }

  @Override
  SpanWriter span() {
    return span;
  }

  @Override
  CopyWork newWork(Plan plan, CopyTools tools) {
    return new PublishCopy(plan, target, arenas, tools, table.memory());
  }

  @Override
  void progressed(CopyWork work, boolean lastPart) {}

  @Override
  void copied(CopyWork work) {}

  @Override
  void end(Status status, String message) {
    boolean unknown = status == Status.SESSION_ENDED;
    List<Block> blocks = unknown ? List.of() : Collections.nCopies(target.size(), Block.NOT_STORED);
    result = new PublishResult(status, message, 0, 0, unknown ? 0 : target.size(), blocks, copyNs);
  }

  @Override
  void endByRecord(Status status, String message) {
    int slot = GrantWord.slotOf(operationId());
    int stored = Math.clamp(table.stored(slot), 0, target.size());
    int held = Math.clamp(table.held(slot), 0, target.size() - stored);
    int refused = target.size() - stored - held;
    result =
        new PublishResult(status, message, stored, held, refused, blocks(stored, held), copyNs);
  }

  /** Results of each block: from the answer, or from counts that leave no choice, or none. */
  private List<Block> blocks(int stored, int held) {
    byte[] answer = results;
    if (answer != null && answer.length == target.size()) {
      List<Block> blocks = new ArrayList<>(answer.length);
      for (byte code : answer) {
        blocks.add(block(code));
      }
      return blocks;
    }
    int size = target.size();
    if (stored == size) {
      return Collections.nCopies(size, Block.STORED);
    }
    return held == size ? Collections.nCopies(size, Block.HELD) : List.of();
  }

  private static Block block(int code) {
    return switch (code) {
      case PublishReply.STORED -> Block.STORED;
      case PublishReply.HELD -> Block.HELD;
      case PublishReply.REFUSED_POOL_FULL -> Block.REFUSED;
      default -> Block.NOT_STORED;
    };
  }

  @Override
  boolean outcomeComplete(long nowNs) {
    session.takePublishReplies();
    int slot = GrantWord.slotOf(operationId());
    if (results != null
        || table.stored(slot) == target.size()
        || table.held(slot) == target.size()) {
      return true;
    }
    if (reapedNs == 0) {
      reapedNs = nowNs;
    }
    return nowNs - reapedNs > REPLY_WAIT_NS;
  }

  @Override
  void answered(Status status, byte[] answer) {
    if (answer != null) {
      results = answer;
    } else if (status != Status.OK) {
      cancel(status, "the Manager refused the publish: " + status);
    }
  }

  @Override
  void releasePages() {}

  @Override
  void neverClaimed() {}

  @Override
  void onSettled() {
    charge.release();
  }
}
