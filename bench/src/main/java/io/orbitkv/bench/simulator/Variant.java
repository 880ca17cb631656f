package io.orbitkv.bench.simulator;

import io.orbitkv.channel.GrantTable;
import io.orbitkv.core.CacheCore;
import java.lang.foreign.MemorySegment;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * The parts of a run that a test may weaken, to see that the simulator notices.
 *
 * @param managerTable the Manager's view of a grant table, told what to run before each access
 * @param engineTable the engine's view of one
 * @param looksAgain whether the Manager looks for work between its announcement and its sleep, at
 *     bounded intervals, and at records without a dirty bit
 * @param afterCommand called after each command that the core has executed
 */
record Variant(
    BiFunction<MemorySegment, Runnable, GrantTable> managerTable,
    Function<MemorySegment, GrantTable> engineTable,
    boolean looksAgain,
    AfterCommand afterCommand) {
  /** Told of commands. */
  interface AfterCommand {
    /** The core has executed a command of a session. */
    void executed(CacheCore core, int session, int opcode, long operationId);
  }

  /** All as it is. */
  static Variant real() {
    return new Variant(WatchedTable::new, GrantTable::open, true, (_, _, _, _) -> {});
  }
}
