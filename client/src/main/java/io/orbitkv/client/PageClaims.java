package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.util.BitSet;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Pages of one group's memory that are targets of an unfinished restore. One object for each memory
 * of the process, shared by all sessions and Manager epochs, so that a claim outlives both.
 * Thread-safe.
 */
final class PageClaims {
  private static final ConcurrentHashMap<Long, PageClaims> BY_ADDRESS = new ConcurrentHashMap<>();

  private final long address;
  private final BitSet targets = new BitSet();
  private int holders;

  private PageClaims(long address) {
    this.address = address;
  }

  /** The claims of the memory whose page 0 begins at {@code address}; to be left once. */
  static PageClaims enter(long address) {
    return BY_ADDRESS.compute(
        address,
        (key, found) -> {
          PageClaims claims = found == null ? new PageClaims(key) : found;
          claims.holders++;
          return claims;
        });
  }

  /** Forgets the memory once nobody holds it and nothing is claimed. */
  void leave() {
    BY_ADDRESS.compute(
        address,
        (key, found) -> {
          holders--;
          return holders == 0 && isUnclaimed() ? null : found;
        });
  }

  synchronized boolean isUnclaimed() {
    return targets.isEmpty();
  }

  /**
   * Claims pages as targets, all or none.
   *
   * @throws OrbitKvException with {@link Status#INVALID} naming the first page that is claimed
   */
  synchronized void claim(int[] pages) {
    for (int i = 0; i < pages.length; i++) {
      if (targets.get(pages[i])) {
        for (int j = 0; j < i; j++) {
          targets.clear(pages[j]);
        }
        throw refused(pages[i]);
      }
      targets.set(pages[i]);
    }
  }

  /** Ends claims. */
  synchronized void release(int[] pages) {
    for (int page : pages) {
      targets.clear(page);
    }
  }

  /**
   * Checks that no page is claimed.
   *
   * @throws OrbitKvException as {@link #claim}
   */
  synchronized void requireUnclaimed(int[] pages) {
    for (int page : pages) {
      if (targets.get(page)) {
        throw refused(page);
      }
    }
  }

  private static OrbitKvException refused(int page) {
    return new OrbitKvException(
        Status.INVALID, "page=" + page + " is target of an unfinished restore");
  }
}
