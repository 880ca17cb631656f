package io.orbitkv.client;

import java.util.concurrent.TimeUnit;

/** Decides when overdue publishes are worth a line in the log. Belongs to one thread. */
final class OverdueWarnings {
  private static final long INTERVAL_NS = TimeUnit.SECONDS.toNanos(60);

  private boolean warned;
  private long warnedNs;

  /** True when there are overdue publishes and the last warning is a minute old. */
  boolean isDue(PublishActivity activity, long nowNs) {
    if (activity.overdue() == 0 || (warned && nowNs - warnedNs < INTERVAL_NS)) {
      return false;
    }
    warned = true;
    warnedNs = nowNs;
    return true;
  }
}
