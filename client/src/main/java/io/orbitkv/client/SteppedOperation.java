package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.util.BitSet;

/** One Restore or Publish of a {@link SteppedSession}. Belongs to one thread. */
public final class SteppedOperation {
  /** Told of ranges of the pool. */
  @FunctionalInterface
  public interface RangeVisitor {
    /** One range. */
    void range(int arena, long offset, long length);
  }

  final EngineOperation operation;

  SteppedOperation(EngineOperation operation) {
    this.operation = operation;
  }

  /** Makes one step, at most one access to its grant record; true when something moved. */
  public boolean step(long nowNs) {
    return operation.step(nowNs);
  }

  /** Asks for the end; the next steps see to it. */
  public void cancel() {
    operation.cancel(Status.CANCELLED, "cancelled by the caller");
  }

  /** Id of the operation in its session; -1 before the record is reserved. */
  public long id() {
    return operation.operationId();
  }

  /** True for a publish, false for a restore. */
  public boolean isPublish() {
    return operation instanceof PublishOperation;
  }

  /** True once the caller has its answer. */
  public boolean isDone() {
    return operation.isDone();
  }

  /** True when no step is left. */
  public boolean isSettled() {
    return operation.isSettled();
  }

  /** True once the pages are the caller's again. */
  public boolean pagesFree() {
    return operation.pagesFree();
  }

  /** True from Active on until the record has drained: memory of the pool may be touched. */
  public boolean mayTouchPool() {
    return operation.mayTouchPool();
  }

  /** True once its last part has drained with every access of every part done. */
  public boolean hasDrainedWhole() {
    return operation.hasDrainedWhole();
  }

  /** True while a part is being copied. */
  public boolean isCopying() {
    return operation.copying() != null;
  }

  /** Visits the ranges of the pool that the part which is being copied touches. */
  public void visitRanges(RangeVisitor visitor) {
    Plan plan = operation.copying();
    for (int i = 0; plan != null && i < plan.size; i++) {
      long length =
          operation.target.groups()[operation.target.groupIds()[plan.block[i]]].blockBytes;
      visitor.range(plan.arena[i], plan.offset[i], length);
    }
  }

  /** How it ended; null while it is pending. */
  public Status status() {
    if (operation instanceof PublishOperation publish) {
      return publish.result() == null ? null : publish.result().status();
    }
    RestoreResult result = ((RestoreOperation) operation).result();
    return result == null ? null : result.status();
  }

  /** What was said of its end; null while it is pending. */
  public String message() {
    if (operation instanceof PublishOperation publish) {
      return publish.result() == null ? null : publish.result().message();
    }
    RestoreResult result = ((RestoreOperation) operation).result();
    return result == null ? null : result.message();
  }

  /** Blocks that a restore which is done has not delivered, counted over its pages. */
  public BitSet notDelivered() {
    return ((RestoreOperation) operation).result().notDelivered();
  }

  /** How a publish ended; null while it is pending. */
  public PublishResult published() {
    return ((PublishOperation) operation).result();
  }
}
