package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.List;

/** Engine side of one Restore; it is over for the caller at Drained. */
final class RestoreOperation extends EngineOperation {
  private final EngineSession session;
  private final RestoreSpan span;
  private final List<RestoreItem> items;
  private final PageClaims[] claims;
  private final boolean verify;
  private final BitSet delivered = new BitSet();

  private volatile int layersDone;
  private volatile RestoreResult result;

  /**
   * A restore whose pages are claimed already.
   *
   * @param claims claims of each group, by group id
   */
  RestoreOperation(
      EngineSession session,
      RestoreSpan span,
      Fence fence,
      long claimBoundNs,
      Target target,
      MemorySegment[] arenas,
      CopyTools.Pool toolsPool,
      PageClaims[] claims,
      boolean verify) {
    super(session, GrantTable.RESTORE, fence, claimBoundNs, target, arenas, toolsPool);
    this.session = session;
    this.span = span;
    this.items = span.items();
    this.claims = claims;
    this.verify = verify;
  }

  /** How it ended; null while it is pending. */
  RestoreResult result() {
    return result;
  }

  /** Layers that have arrived in every page. */
  int layersDone() {
    return layersDone;
  }

  @Override
  int ring() {
    return ChannelDescriptor.QUERY_REQUESTS;
  }

  @Override
  int opcode() {
    return Opcode.RESTORE;
  }

  @Override
  SpanWriter span() {
    return span;
  }

  @Override
  CopyWork newWork(Plan plan, CopyTools tools) {
    return new RestoreCopy(plan, target, arenas, tools, verify, table.memory());
  }

  @Override
  void progressed(CopyWork work, boolean lastPart) {
    int layers = ((RestoreCopy) work).layersDone();
    if (lastPart && work.failed.isEmpty() && layers > layersDone) {
      arrived(layers);
    }
  }

  private synchronized void arrived(int layers) {
    if (layers > layersDone) {
      layersDone = layers;
      announce();
    }
  }

  @Override
  void copied(CopyWork work) {
    if (work.entriesDone() > 0) {
      for (int i = 0; i < work.plan.size; i++) {
        delivered.set(work.plan.block[i], !work.failed.get(i));
      }
    }
    if (!work.failed.isEmpty()) {
      int entry = work.failed.nextSetBit(0);
      int block = work.plan.block[entry];
      failCopy(
          "checksum differs: block="
              + block
              + ", group="
              + target.groupIds()[block]
              + ", page="
              + target.pages()[block]
              + ", blocks that differ="
              + work.failed.cardinality());
    }
  }

  @Override
  void end(Status status, String message) {
    BitSet missing = new BitSet();
    missing.set(0, target.size());
    missing.andNot(delivered);
    result = new RestoreResult(status, message, missing, copyNs);
  }

  @Override
  void endByRecord(Status status, String message) {
    end(status == Status.OK ? Status.INTERNAL : status, message);
  }

  @Override
  boolean outcomeComplete(long nowNs) {
    return true;
  }

  @Override
  void answered(Status status, byte[] results) {
    if (status != Status.OK) {
      cancel(status, "the Manager refused the restore: " + status);
    }
  }

  @Override
  void releasePages() {
    for (RestoreItem item : items) {
      claims[item.lease().group()].release(item.pages());
    }
  }

  @Override
  void neverClaimed() {
    for (RestoreItem item : items) {
      session.releaseQuietly(item.lease().id());
    }
  }

  @Override
  void onSettled() {}
}
