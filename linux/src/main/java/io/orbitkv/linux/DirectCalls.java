package io.orbitkv.linux;

import java.lang.foreign.MemorySegment;

/**
 * Calls that only storage makes: pread(2), pwrite(2), fallocate(2). Each returns what libc returns;
 * after −1 the reason is {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/pread.2.html">pread(2)</a>
 * @see <a href="https://man7.org/linux/man-pages/man2/fallocate.2.html">fallocate(2)</a>
 */
final class DirectCalls {
  private static final Libc.PointerSecond PREAD = Libc.PointerSecond.of("pread");
  private static final Libc.PointerSecond PWRITE = Libc.PointerSecond.of("pwrite");
  private static final Libc.Numbers FALLOCATE = Libc.Numbers.of("fallocate");

  private DirectCalls() {}

  static long pread(int fd, MemorySegment bytes, long length, long offset) {
    return PREAD.call(fd, bytes, length, offset, 0);
  }

  static long pwrite(int fd, MemorySegment bytes, long length, long offset) {
    return PWRITE.call(fd, bytes, length, offset, 0);
  }

  static int fallocate(int fd, int mode, long offset, long length) {
    return (int) FALLOCATE.call(fd, mode, offset, length, 0, 0);
  }
}
