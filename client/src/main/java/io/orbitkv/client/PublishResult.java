package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.util.List;

/**
 * How a publish ended.
 *
 * @param status OK when every block is stored or held; POOL_FULL when some were refused;
 *     SESSION_ENDED when the outcome is unknown because the session ended after the copy
 * @param message what the Manager or the copy said; empty when all is well
 * @param stored blocks stored by this operation
 * @param held blocks that were held already
 * @param refused blocks refused or not stored
 * @param blocks result of each block, counted over the items in order; empty when that answer was
 *     lost
 * @param copyNs nanoseconds that the copy took
 */
public record PublishResult(
    Status status,
    String message,
    int stored,
    int held,
    int refused,
    List<Block> blocks,
    long copyNs) {
  /** Result of one block. */
  public enum Block {
    /** Written and visible. */
    STORED,
    /** Already held. */
    HELD,
    /** No room. */
    REFUSED,
    /** Not written: cancelled, revoked or failed. */
    NOT_STORED
  }

  /** Copies the list. */
  public PublishResult {
    blocks = List.copyOf(blocks);
  }
}
