package io.orbitkv.core;

import java.util.List;

/**
 * A checked registration.
 *
 * @param namespace digest of 32 bytes
 * @param hashBytes bytes of a block hash
 * @param tpRank tensor-parallel rank
 * @param ppRank pipeline-parallel rank
 * @param dcpRank decode-context-parallel rank
 * @param groups groups of the state
 * @param restoreOnly true when the engine maps the pool read-only
 * @param exitProvesTermination true when the end of the engine's process proves that its copies
 *     have ended
 */
@SuppressWarnings(
    "ArrayRecordComponent") // digests are compared by content, in the core's own table
public record RegistrationRequest(
    byte[] namespace,
    int hashBytes,
    int tpRank,
    int ppRank,
    int dcpRank,
    List<Group> groups,
    boolean restoreOnly,
    boolean exitProvesTermination) {
  /**
   * One group.
   *
   * @param id group id
   * @param blockBytes bytes of a block
   * @param pages pages of the engine
   */
  public record Group(int id, int blockBytes, int pages) {}

  /** Copies the list. */
  public RegistrationRequest {
    groups = List.copyOf(groups);
  }

  /** Bytes of the pages of all groups, a page being as large as its block. */
  public long pageBytes() {
    return groups.stream().mapToLong(group -> (long) group.pages() * group.blockBytes()).sum();
  }
}
