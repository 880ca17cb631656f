package io.orbitkv.client;

import java.util.function.Consumer;

/**
 * Named points of an operation at which a test may hold the thread that works on it, to end a
 * process just there. Only with {@code -Dorbitkv.pausePoints=true}; without the flag nothing is
 * called and the compiler removes the checks.
 *
 * <p>The points are {@code restore.} or {@code publish.} and one of {@code admitted} (before a
 * record is reserved), {@code reserved} (before the command is sent), {@code granted} (before the
 * engine goes Active), {@code active} (before the plan is read), {@code copying} (between two steps
 * of the copy), {@code copied} (before Drained or PartDrained), {@code partDrained} (before the
 * Manager is told) and {@code drained}. Of a large copy also {@code shared} (the driver has called
 * for help) and {@code helping} (another thread, between the claim of a share and its copy).
 */
public final class PausePoints {
  private static final boolean ENABLED = Boolean.getBoolean("orbitkv.pausePoints");

  private static volatile Consumer<String> listener = point -> {};

  private PausePoints() {}

  /** Sets who is told that a point was reached, on the thread that reached it. */
  public static void onReached(Consumer<String> newListener) {
    listener = newListener;
  }

  static void reached(boolean publish, String point) {
    if (ENABLED) {
      listener.accept((publish ? "publish." : "restore.") + point);
    }
  }
}
