package io.orbitkv.client;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;

/** The Manager's view of a grant table; somebody is told before each access, and what it read. */
class SteppedTable extends GrantTable {
  /** Told of accesses. */
  interface Watcher {
    /** An access of this name comes next. */
    void before(String access);

    /** What the access read. */
    void read(long value);
  }

  final Watcher watcher;

  SteppedTable(MemorySegment region, Watcher watcher) {
    super(region);
    this.watcher = watcher;
  }

  /** True when the other is this very view. */
  @SuppressWarnings("ReferenceEquality")
  final boolean isOf(Object other) {
    return this == other;
  }

  private long seen(long value) {
    watcher.read(value);
    return value;
  }

  @Override
  public long wordAcquire(int slot) {
    watcher.before("word");
    return seen(super.wordAcquire(slot));
  }

  @Override
  public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
    watcher.before("move");
    boolean moved = super.tryManagerMove(slot, word, next, part);
    seen(moved ? 1 : 0);
    return moved;
  }

  @Override
  public long drainsAcquire() {
    watcher.before("drains");
    return super.drainsAcquire();
  }

  @Override
  public long takeDirty(int word) {
    if (word > 0) { // the records in use here are the first ones
      return super.takeDirty(word);
    }
    watcher.before("dirty");
    return seen(super.takeDirty(word));
  }

  @Override
  public void setPlan(int slot, int planOffset, int planEntries, int parts) {
    watcher.before("plan");
    super.setPlan(slot, planOffset, planEntries, parts);
  }

  @Override
  public void setOutcome(int slot, Status status, int stored, int held, int refused, String error) {
    watcher.before("outcome");
    super.setOutcome(slot, status, stored, held, refused, error);
  }
}
