package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * Waits on a few descriptors at once. Thread-safe, and allocates nothing.
 *
 * <p>An entry, struct pollfd, has 8 bytes: the descriptor at 0 (4), the events wanted at 4 (2), the
 * events that came at 6 (2).
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/poll.2.html">poll(2)</a>
 */
public final class Poll {
  /** There is something to read, or to accept, or the end. */
  public static final short IN = 0x1;

  /** There is room to write. */
  public static final short OUT = 0x4;

  /** An error; reported unasked. */
  public static final short ERROR = 0x8;

  /** The other side is gone; reported unasked. */
  public static final short HANG_UP = 0x10;

  /** The descriptor is not open; reported unasked. */
  public static final short INVALID = 0x20;

  /** Most descriptors of one wait, one a bit of the result. */
  public static final int MAX_FDS = 32;

  static final int POLLFD_BYTES = 8;

  private Poll() {}

  /**
   * Waits until a descriptor is ready, has an error or is not open.
   *
   * @param fds at most {@link #MAX_FDS} descriptors; negative ones are passed over
   * @param events wanted of each: {@link #IN}, {@link #OUT} or both
   * @param timeoutMs bound of the wait, not negative; 0 only looks
   * @return bit {@code i} is set when {@code fds[i]} is ready; 0 when the time passed
   */
  public static int poll(int[] fds, short events, int timeoutMs) {
    if (fds.length > MAX_FDS) {
      throw new IllegalArgumentException(
          "too many descriptors: count=" + fds.length + ", max=" + MAX_FDS);
    }
    var entries = CallState.pollFds();
    for (int i = 0; i < fds.length; i++) {
      set(entries, i, fds[i], events);
    }
    await(entries, fds.length, timeoutMs);
    int ready = 0;
    for (int i = 0; i < fds.length; i++) {
      if (came(entries, i) != 0) {
        ready |= 1 << i;
      }
    }
    return ready;
  }

  /**
   * Waits on one descriptor.
   *
   * @return the events that came, as {@link #IN}; 0 when the time passed
   */
  public static int poll(int fd, short events, int timeoutMs) {
    var entries = CallState.pollFds();
    set(entries, 0, fd, events);
    await(entries, 1, timeoutMs);
    return came(entries, 0);
  }

  private static void set(MemorySegment entries, int index, int fd, short events) {
    long base = (long) index * POLLFD_BYTES;
    entries.set(JAVA_INT, base, fd);
    entries.set(JAVA_SHORT, base + 4, events);
    entries.set(JAVA_SHORT, base + 6, (short) 0);
  }

  private static int came(MemorySegment entries, int index) {
    return entries.get(JAVA_SHORT, (long) index * POLLFD_BYTES + 6);
  }

  private static void await(MemorySegment entries, int count, int timeoutMs) {
    long deadlineNs = Deadline.afterMs(timeoutMs);
    int leftMs = timeoutMs;
    while (WaitCalls.poll(entries, count, leftMs) < 0) {
      if (CallState.errno() != Errno.EINTR) {
        throw LinuxException.last("poll", "count=" + count + ", timeoutMs=" + timeoutMs);
      }
      leftMs = Deadline.leftMs(deadlineNs);
    }
  }
}
