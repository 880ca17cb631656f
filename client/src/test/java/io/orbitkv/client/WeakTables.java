package io.orbitkv.client;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;

/** Views of a grant table, each of which breaks one rule for the core or the engine it serves. */
final class WeakTables {
  private WeakTables() {}

  static GrantWorld.Tables manager(GrantWorld.TableMaker maker) {
    return new GrantWorld.Tables(maker, GrantTable::open);
  }

  private static void store(MemorySegment region, int slot, long word) {
    Memory.putLong(region, 512 + 192L * slot, word);
  }

  /** Makes one kind of move by a store, where a compare-and-set would lose. */
  static final class StoringManager extends SteppedTable {
    private final GrantState weak;

    StoringManager(MemorySegment region, Watcher watcher, GrantState weak) {
      super(region, watcher);
      this.weak = weak;
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      if (super.tryManagerMove(slot, word, next, part)) {
        return true;
      }
      if (next == weak) {
        store(memory(), slot, GrantWord.of(GrantWord.generation(word), part, next));
      }
      return next == weak;
    }
  }

  /** Goes Active by a store, where a compare-and-set would lose. */
  static final class StoringEngine extends GrantTable {
    StoringEngine(MemorySegment region) {
      super(region);
    }

    @Override
    public boolean tryEngineMove(int slot, long word, GrantState next) {
      if (super.tryEngineMove(slot, word, next)) {
        return true;
      }
      if (next == GrantState.ACTIVE) {
        store(memory(), slot, GrantWord.withState(word, next));
      }
      return next == GrantState.ACTIVE;
    }
  }

  /** Goes Active only when the plan has been read and copied. */
  static final class LateEngine extends GrantTable {
    LateEngine(MemorySegment region) {
      super(region);
    }

    @Override
    public boolean tryEngineMove(int slot, long word, GrantState next) {
      if (next == GrantState.ACTIVE) {
        return true;
      }
      if (GrantWord.state(word) == GrantState.ACTIVE) {
        super.tryEngineMove(slot, GrantWord.withState(word, GrantState.GRANTED), GrantState.ACTIVE);
      }
      return super.tryEngineMove(slot, word, next);
    }
  }

  /** Never makes one kind of move. */
  static final class RefusingManager extends SteppedTable {
    private final GrantState from;
    private final GrantState to;

    RefusingManager(MemorySegment region, Watcher watcher, GrantState from, GrantState to) {
      super(region, watcher);
      this.from = from;
      this.to = to;
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      boolean refused = GrantWord.state(word) == from && next == to;
      return !refused && super.tryManagerMove(slot, word, next, part);
    }
  }

  /** Does not end an operation between two parts. */
  static final class KeepingEngine extends GrantTable {
    KeepingEngine(MemorySegment region) {
      super(region);
    }

    @Override
    public boolean tryEngineMove(int slot, long word, GrantState next) {
      return GrantWord.state(word) != GrantState.PART_DRAINED
          && super.tryEngineMove(slot, word, next);
    }
  }

  /** Does not see that the engine has given up in Preparing. */
  static final class BlindToCancel extends SteppedTable {
    BlindToCancel(MemorySegment region, Watcher watcher) {
      super(region, watcher);
    }

    @Override
    public long wordAcquire(int slot) {
      long word = super.wordAcquire(slot);
      return GrantWord.state(word) == GrantState.CANCEL_REQUESTED
          ? GrantWord.withState(word, GrantState.PREPARING)
          : word;
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      return GrantWord.state(super.wordAcquire(slot)) != GrantState.CANCEL_REQUESTED
          && super.tryManagerMove(slot, word, next, part);
    }
  }

  /** Reads no result of the engine: every part counts as whole. */
  static final class BelievesEveryDrain extends SteppedTable {
    BelievesEveryDrain(MemorySegment region, Watcher watcher) {
      super(region, watcher);
    }

    @Override
    public Status engineStatus(int slot) {
      return Status.OK;
    }

    @Override
    public int entriesDone(int slot) {
      return planEntries(slot);
    }
  }

  /** Claims a reserved record for any command that names its slot, of whatever generation. */
  static final class BlindToGeneration extends SteppedTable {
    private final WorldSession session;

    BlindToGeneration(MemorySegment region, Watcher watcher) {
      super(region, watcher);
      session = (WorldSession) watcher;
    }

    @Override
    public long wordAcquire(int slot) {
      long word = super.wordAcquire(slot);
      return GrantWord.state(word) == GrantState.RESERVED
          ? GrantWord.of(GrantWord.generationOf(session.commandId), 0, GrantState.RESERVED)
          : word;
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      long found = super.wordAcquire(slot);
      boolean claims =
          next == GrantState.PREPARING && GrantWord.state(found) == GrantState.RESERVED;
      return super.tryManagerMove(slot, claims ? found : word, next, part);
    }
  }

  /** Takes the first part of an operation for all of it. */
  static final class ContentWithOnePart extends SteppedTable {
    private final WorldSession session;

    ContentWithOnePart(MemorySegment region, Watcher watcher) {
      super(region, watcher);
      session = (WorldSession) watcher;
    }

    @Override
    public long wordAcquire(int slot) {
      long word = super.wordAcquire(slot);
      if (GrantWord.state(word) != GrantState.PART_DRAINED) {
        return word;
      }
      Object[] operations = (Object[]) StateHash.field(session.coreSession(), "operations");
      StateHash.setField(operations[slot], "parts", GrantWord.part(word) + 1);
      return GrantWord.withState(word, GrantState.DRAINED);
    }

    @Override
    public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
      boolean isPart = GrantWord.state(super.wordAcquire(slot)) == GrantState.PART_DRAINED;
      long found = isPart ? GrantWord.withState(word, GrantState.PART_DRAINED) : word;
      return super.tryManagerMove(slot, found, next, part);
    }
  }
}
