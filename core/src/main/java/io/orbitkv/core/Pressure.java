package io.orbitkv.core;

/**
 * Takes back grants that no engine has taken up for {@link #REVOKE_AFTER_NS}, as far as others want
 * their room.
 */
final class Pressure {
  /** Age from which a grant that its engine has not taken up gives way to what waits for room. */
  static final long REVOKE_AFTER_NS = 10_000_000_000L;

  private final BlockStore store;
  private final Operations operations;

  /** Grants taken back. */
  long revoked;

  Pressure(BlockStore store, Operations operations) {
    this.store = store;
    this.operations = operations;
  }

  /**
   * Takes back grants of sessions whose bank somebody waits for and which were granted nothing in
   * that time, and as many of all sessions as free what the pool had no room for since the last
   * call.
   */
  void relieve(Session[] sessions, long nowNs) {
    for (Session session : sessions) {
      if (session != null && nowNs - session.lastGrantNs >= REVOKE_AFTER_NS) {
        relieveBank(session, nowNs);
      }
    }
    long wanted = store.takeShortage();
    for (int i = 0; wanted > 0 && i < sessions.length; i++) {
      if (sessions[i] != null && sessions[i].unsettled > 0) {
        wanted = relievePool(sessions[i], wanted, nowNs);
      }
    }
  }

  private void relieveBank(Session session, long nowNs) {
    for (Operation op : session.operations) {
      if (session.waitingForBank.isEmpty()) {
        return;
      }
      if (isOverdue(op, nowNs)) {
        revoke(op, "its plan space", nowNs);
      }
    }
  }

  /** Returns how many bytes are still wanted. */
  private long relievePool(Session session, long wanted, long nowNs) {
    long left = wanted;
    for (Operation op : session.operations) {
      if (left <= 0) {
        return left;
      }
      if (isOverdue(op, nowNs)) {
        long bytes = store.ownedBytes(op);
        left -= revoke(op, "its blocks", nowNs) ? bytes : 0;
      }
    }
    return left;
  }

  private static boolean isOverdue(Operation op, long nowNs) {
    return op != null
        && op.phase == Operation.Phase.GRANTED
        && nowNs - op.grantedNs >= REVOKE_AFTER_NS;
  }

  private boolean revoke(Operation op, String wanted, long nowNs) {
    long seconds = (nowNs - op.grantedNs) / 1_000_000_000L;
    boolean done =
        operations.revokeForOthers(
            op, "not begun for s=" + seconds + " after the grant, and others wait for " + wanted);
    revoked += done ? 1 : 0;
    return done;
  }
}
