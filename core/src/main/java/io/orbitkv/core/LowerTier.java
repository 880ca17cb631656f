package io.orbitkv.core;

/** What the eviction policy asks of the tier below. */
@FunctionalInterface
interface LowerTier {
  /** True when a lookup would find a copy of the resident row there. */
  boolean holds(int row);
}
