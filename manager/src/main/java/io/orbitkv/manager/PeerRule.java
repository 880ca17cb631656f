package io.orbitkv.manager;

import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
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
  private static final String OWNER_ENTERS = "rwx------";
  private static final String EVERYONE_ENTERS = "rwx--x--x";

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

  /**
   * Mode of a directory that is made for the socket: users of the list must get to the socket, and
   * nobody else needs to see what is there.
   */
  Set<PosixFilePermission> directoryMode() {
    return PosixFilePermissions.fromString(allowedUids.isEmpty() ? OWNER_ENTERS : EVERYONE_ENTERS);
  }

  /** Mode of the socket file. */
  int socketMode() {
    return allowedUids.isEmpty() ? OWNER_ONLY : EVERYONE;
  }
}
