package io.orbitkv.client;

import io.orbitkv.channel.LookupRequest;
import java.util.List;

/**
 * What to look up.
 *
 * @param namespaces namespace digests of 32 bytes, one for each rank shard
 * @param groupMask bit g asks for group g
 * @param hashes block hashes in the order of the prefix
 * @param mode what to reserve
 * @param queryId identity of the query, 0 for none; a later revision of the same query voids the
 *     answers of earlier ones
 * @param revision revision of the query
 * @param maxLeaseAgeMs maximum age of the leases, 0 for the Manager's default
 */
public record LookupRequestSpec(
    List<byte[]> namespaces,
    long groupMask,
    BlockHashes hashes,
    Mode mode,
    long queryId,
    int revision,
    int maxLeaseAgeMs) {
  /** What a lookup reserves. */
  public enum Mode {
    /** Nothing: the answer is a hint. */
    CANDIDATES(LookupRequest.CANDIDATES),
    /** The blocks before the first missing one. */
    PREFIX(LookupRequest.PREFIX),
    /** Every block that is present. */
    ALL(LookupRequest.ALL);

    private final int code;

    Mode(int code) {
      this.code = code;
    }

    int code() {
      return code;
    }
  }

  /** Copies the list. */
  public LookupRequestSpec {
    namespaces = List.copyOf(namespaces);
  }

  /** The prefix of group 0 in one namespace. */
  public static LookupRequestSpec prefix(byte[] namespace, BlockHashes hashes) {
    return new LookupRequestSpec(List.of(namespace), 1, hashes, Mode.PREFIX, 0, 0, 0);
  }
}
