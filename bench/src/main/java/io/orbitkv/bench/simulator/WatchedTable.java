package io.orbitkv.bench.simulator;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import java.lang.foreign.MemorySegment;

/** The Manager's view of a grant table; before each access the engine may make steps. */
class WatchedTable extends GrantTable {
  private final Runnable before;

  WatchedTable(MemorySegment region, Runnable before) {
    super(region);
    this.before = before;
  }

  @Override
  public long wordAcquire(int slot) {
    before.run();
    return super.wordAcquire(slot);
  }

  @Override
  public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
    before.run();
    return super.tryManagerMove(slot, word, next, part);
  }

  @Override
  public long takeDirty(int word) {
    if (word == 0) { // once a poll is enough
      before.run();
    }
    return super.takeDirty(word);
  }
}
