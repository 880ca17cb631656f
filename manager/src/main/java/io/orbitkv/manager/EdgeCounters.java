package io.orbitkv.manager;

import io.orbitkv.channel.Status;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** What the edge has refused and ended, by reason. Thread-safe. */
final class EdgeCounters {
  private final Map<Status, LongAdder> connectionFailures = counters(Status.class);
  private final Map<SessionEnd, LongAdder> sessionsEnded = counters(SessionEnd.class);
  private final LongAdder internalErrors = new LongAdder();

  private static <E extends Enum<E>> Map<E, LongAdder> counters(Class<E> reasons) {
    Map<E, LongAdder> counters = new EnumMap<>(reasons);
    for (E reason : reasons.getEnumConstants()) {
      counters.put(reason, new LongAdder());
    }
    return Collections.unmodifiableMap(counters);
  }

  /** A connection was closed with this status. */
  void connectionFailed(Status status) {
    connectionFailures.get(status).increment();
  }

  long connectionFailures(Status status) {
    return connectionFailures.get(status).sum();
  }

  /** A session ended for this reason. */
  void sessionEnded(SessionEnd reason) {
    sessionsEnded.get(reason).increment();
  }

  long sessionsEnded(SessionEnd reason) {
    return sessionsEnded.get(reason).sum();
  }

  /** The Manager met a fault of its own. */
  void internalError() {
    internalErrors.increment();
  }

  long internalErrors() {
    return internalErrors.sum();
  }
}
