package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * Says in a channel that one side sleeps, so that the other writes an eventfd only then. The
 * sleeper announces, looks for work once more, and sleeps; the other side publishes work and then
 * looks for an announcement. With a full fence between both halves of either side at least one of
 * them sees the other, so no work is left to a sleeper that nobody wakes.
 */
public final class SleepFlag {
  private SleepFlag() {}

  /** Announces a sleep; what the caller looks at next is not older than the announcement. */
  public static void announce(MemorySegment channel, long offset) {
    set(channel, offset, 1);
    fence();
  }

  /** Takes an announcement back. */
  public static void withdraw(MemorySegment channel, long offset) {
    set(channel, offset, 0);
  }

  /** Sets an announcement; {@link #fence} goes between several of them and the look for work. */
  public static void set(MemorySegment channel, long offset, int value) {
    Memory.putIntVolatile(channel, offset, value); // SYNC: sleeps
  }

  /** Goes between what was published, or announced, and the look at what the other side did. */
  public static void fence() {
    VarHandle.fullFence(); // SYNC: sleeps
  }

  /** Whether the other side sleeps, behind a {@link #fence}. */
  public static boolean isAnnounced(MemorySegment channel, long offset) {
    return Memory.getIntVolatile(channel, offset) != 0; // SYNC: sleeps
  }
}
