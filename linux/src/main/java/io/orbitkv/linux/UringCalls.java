package io.orbitkv.linux;

import java.lang.foreign.MemorySegment;

/**
 * Calls of io_uring, which libc does not wrap: io_uring_setup(2) and io_uring_enter(2). Each
 * returns what syscall(2) returns; after −1 the reason is {@link CallState#errno()}. The numbers
 * are the same on x86-64 and aarch64.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/io_uring_enter.2.html">io_uring_enter(2)</a>
 */
final class UringCalls {
  private static final int SYS_IO_URING_SETUP = 425;
  private static final int SYS_IO_URING_ENTER = 426;

  private static final Libc.Numbers SYSCALL = Libc.Numbers.of("syscall");

  private UringCalls() {}

  /** Fills {@code parameters} (120 bytes) and returns the descriptor of a new ring. */
  static long setup(int entries, MemorySegment parameters) {
    return SYSCALL.call(SYS_IO_URING_SETUP, entries, parameters.address());
  }

  /** Hands over submissions; does not wait for completions. Without a signal mask. */
  static long enter(int fd, int submissions) {
    return SYSCALL.call(SYS_IO_URING_ENTER, fd, submissions, 0, 0, 0);
  }
}
