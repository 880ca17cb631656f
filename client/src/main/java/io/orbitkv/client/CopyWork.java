package io.orbitkv.client;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;

/**
 * Copy of one plan, in steps between which it can be stopped. Belongs to the driver of its
 * operation, which drops it with its last step; a step allocates nothing.
 */
abstract sealed class CopyWork permits PublishCopy, RestoreCopy {
  /** Bytes after which a step ends. */
  static final long STEP_BYTES = 8 << 20;

  /** Longest single copy. Long ones use non-temporal stores, which are much faster. */
  static final long RUN_BYTES = 64 << 20;

  final Plan plan;
  final Target target;
  final MemorySegment[] arenas;
  final CopyTools tools;
  final BitSet failed = new BitSet();
  long bytes;

  CopyWork(Plan plan, Target target, MemorySegment[] arenas, CopyTools tools) {
    this.plan = plan;
    this.target = target;
    this.arenas = arenas;
    this.tools = tools;
  }

  /** Does some work; false when all is done. */
  abstract boolean step();

  /** True from shortly before the end on, about as long as a sleeping Manager takes to wake. */
  abstract boolean endsSoon();

  /** Entries whose accesses have ended well. */
  abstract int entriesDone();

  final GroupMemory group(int entry) {
    return target.groups()[target.groupIds()[plan.block[entry]]];
  }

  final int page(int entry) {
    return target.pages()[plan.block[entry]];
  }
}
