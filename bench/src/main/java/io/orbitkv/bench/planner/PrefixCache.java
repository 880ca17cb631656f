package io.orbitkv.bench.planner;

/** A cache of a fixed number of blocks under one policy, with no bytes in it. */
interface PrefixCache extends AutoCloseable {
  /**
   * Plays one request: finds how much of its prefix is held, uses that, and stores the rest.
   *
   * @param ids blocks in prefix order, numbered from 0 on without gaps over the whole trace
   * @return blocks that were held with every earlier one of the request
   */
  int request(int[] ids);

  @Override
  default void close() {}
}
