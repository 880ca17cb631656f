package io.orbitkv.core;

import java.util.ArrayList;
import java.util.List;

/** A look at all operations that are retained. */
final class Retained {
  final List<CoreStats.Retained> list = new ArrayList<>();
  int operations;
  long bytes;

  private final BlockStore store;
  private final long nowNs;

  Retained(Session[] sessions, BlockStore store, long nowNs) {
    this.store = store;
    this.nowNs = nowNs;
    for (Session session : sessions) {
      if (session != null && session.unsettled > 0) {
        add(session);
      }
    }
  }

  private void add(Session session) {
    for (Operation op : session.operations) {
      if (op != null && !op.isSettled() && (session.lost || isFault(op))) {
        long held = store.ownedBytes(op);
        operations++;
        bytes += held;
        if (list.size() < CoreStats.MAX_RETAINED_SHOWN) {
          list.add(
              new CoreStats.Retained(
                  session.slot,
                  session.pid,
                  session.instance.id,
                  op.slot,
                  op.publish,
                  reason(op),
                  session.lost ? nowNs - session.lostNs : 0,
                  held));
        }
      }
    }
  }

  private static boolean isFault(Operation op) {
    return op.phase == Operation.Phase.QUARANTINED;
  }

  private static RetainedReason reason(Operation op) {
    if (isFault(op)) {
      return RetainedReason.FAULT;
    }
    if (op.session.exited) {
      return RetainedReason.DEVICE;
    }
    return op.session.mayPublish ? RetainedReason.PROCESS_LIVES : RetainedReason.NOT_OBSERVED;
  }
}
