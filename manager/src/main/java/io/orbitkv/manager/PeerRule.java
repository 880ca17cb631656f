package io.orbitkv.manager;

import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import java.util.Set;
import java.util.TreeSet;

/**
 * Who may connect: the Manager's own user, or those of a list.
 *
 * @param ownUid user of the Manager
 * @param allowedUids users that may connect; empty for the own one only
 */
record PeerRule(int ownUid, Set<Integer> allowedUids) {
  private static final int OWNER_ONLY = 0600;
  private static final int EVERYONE = 0666;

  /** Copies the set. */
  PeerRule {
    allowedUids = Set.copyOf(allowedUids);
  }

  /**
   * Refuses a user who may not.
   *
   * @throws ProtocolException naming both users and the rule
   */
  void check(int peerUid) {
    boolean allowed = allowedUids.isEmpty() ? peerUid == ownUid : allowedUids.contains(peerUid);
    if (!allowed) {
      throw new ProtocolException(
          Status.FORBIDDEN,
          "user refused: peer uid="
              + peerUid
              + ", Manager uid="
              + ownUid
              + ", rule="
              + (allowedUids.isEmpty()
                  ? "the Manager's own uid only"
                  : "allowed uids " + new TreeSet<>(allowedUids)));
    }
  }

  /** Mode of the socket file. */
  int socketMode() {
    return allowedUids.isEmpty() ? OWNER_ONLY : EVERYONE;
  }
}
