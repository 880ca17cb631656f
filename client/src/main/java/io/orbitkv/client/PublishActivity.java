package io.orbitkv.client;

/**
 * What the publishes of a client are at, read without a lock and without a word of the Manager: a
 * diagnostic, never a proof of anything about memory.
 *
 * @param active publishes that have not ended for their caller
 * @param retained of these, publishes of a session that is over, whose copies still run
 * @param longestNs nanoseconds since the oldest of them was submitted; 0 without one
 * @param overdue of these, publishes older than the bound of a call
 * @param managerAlive whether the Manager's process lives
 */
public record PublishActivity(
    int active, int retained, long longestNs, int overdue, boolean managerAlive) {

  /** Both together, with the Manager of this one. */
  PublishActivity plus(PublishActivity other) {
    return new PublishActivity(
        active + other.active,
        retained + other.retained,
        Math.max(longestNs, other.longestNs),
        overdue + other.overdue,
        managerAlive);
  }
}
