package io.orbitkv.client;

import java.util.function.Consumer;

/**
 * Named points of an operation at which a test may hold or end the process. In normal running
 * nobody listens.
 */
public final class PausePoints {
  /** The record is Reserved, the command not yet written. */
  public static final String RESERVED = "reserved";

  /** The command is written. */
  public static final String SUBMITTED = "submitted";

  /** The fence is done, Active not yet claimed. */
  public static final String GRANTED = "granted";

  /** Active is claimed, the plan not yet read. */
  public static final String ACTIVE = "active";

  /** The plan is read, and nothing or a part of it copied. */
  public static final String COPYING = "copying";

  /** All accesses have ended, Drained is not yet said. */
  public static final String COPIED = "copied";

  /** Drained is said. */
  public static final String DRAINED = "drained";

  /** Reaped is seen, not yet acknowledged. */
  public static final String REAPED = "reaped";

  private static volatile Consumer<String> listener;

  private PausePoints() {}

  /** Sets who is told of each point, on the thread that reaches it; null for nobody. */
  public static void onReached(Consumer<String> value) {
    listener = value;
  }

  static void reached(String point) {
    Consumer<String> told = listener;
    if (told != null) {
      told.accept(point);
    }
  }
}
