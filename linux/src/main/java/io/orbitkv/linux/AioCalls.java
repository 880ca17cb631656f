package io.orbitkv.linux;

import java.lang.foreign.MemorySegment;

/**
 * Calls of the kernel's asynchronous I/O, which libc does not wrap: io_setup(2), io_submit(2),
 * io_getevents(2) and io_destroy(2). Each returns what syscall(2) returns; after −1 the reason is
 * {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/io_submit.2.html">io_submit(2)</a>
 */
final class AioCalls {
  private static final int SYS_IO_SETUP = FileCalls.isAarch64() ? 0 : 206;
  private static final int SYS_IO_DESTROY = FileCalls.isAarch64() ? 1 : 207;
  private static final int SYS_IO_GETEVENTS = FileCalls.isAarch64() ? 4 : 208;
  private static final int SYS_IO_SUBMIT = FileCalls.isAarch64() ? 2 : 209;

  private static final Libc.Numbers SYSCALL = Libc.Numbers.of("syscall");

  private AioCalls() {}

  /** Stores a new context in {@code context}, which holds 0 (8 bytes). */
  static long setup(int count, MemorySegment context) {
    return syscall(SYS_IO_SETUP, count, context.address(), 0, 0, 0);
  }

  static long destroy(long context) {
    return syscall(SYS_IO_DESTROY, context, 0, 0, 0, 0);
  }

  /** Submits the requests whose addresses {@code requests} lists. */
  static long submit(long context, int count, MemorySegment requests) {
    return syscall(SYS_IO_SUBMIT, context, count, requests.address(), 0, 0);
  }

  /** Takes what has completed, without waiting: {@code zeroTime} is a timespec of 0. */
  static long takeEvents(long context, int most, MemorySegment events, MemorySegment zeroTime) {
    return syscall(SYS_IO_GETEVENTS, context, 0, most, events.address(), zeroTime.address());
  }

  private static long syscall(long number, long a, long b, long c, long d, long e) {
    return SYSCALL.call(number, a, b, c, d, e);
  }
}
