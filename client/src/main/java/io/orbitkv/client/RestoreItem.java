package io.orbitkv.client;

/**
 * Blocks of one lease and where they go.
 *
 * @param lease the lease; consumed whole
 * @param skip blocks at its start that are not wanted
 * @param pages target page of each wanted block, in the order of the lease
 */
@SuppressWarnings("ArrayRecordComponent") // read once, when the command is written
public record RestoreItem(Lease lease, int skip, int[] pages) {
  /** All blocks of a lease. */
  public static RestoreItem of(Lease lease, int... pages) {
    return new RestoreItem(lease, 0, pages);
  }
}
