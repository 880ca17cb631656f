package io.orbitkv.linux;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Locale;

/**
 * Calls on files: open(2), close(2), read(2), write(2), ftruncate(2), fcntl(2), chmod(2), flock(2),
 * unlink(2) and statx(2), which unlike stat(2) has one layout on every machine. Each returns what
 * libc returns; after −1 the reason is {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/dir_section_2.html">manual pages, section 2</a>
 */
final class FileCalls {
  static final int O_RDONLY = 0;
  static final int O_RDWR = 2;
  static final int O_CREAT = 0x40;
  static final int O_NONBLOCK = 0x800;
  static final int O_NOFOLLOW = isAarch64() ? 0x8000 : 0x20000;
  static final int O_CLOEXEC = 0x80000;
  static final int O_DIRECT = isAarch64() ? 0x10000 : 0x4000;
  static final int F_GETFL = 3;
  static final int F_SETFL = 4;
  static final int LOCK_EX = 2;
  static final int LOCK_NB = 4;
  static final int AT_FDCWD = -100;
  static final int AT_SYMLINK_NOFOLLOW = 0x100;
  static final int AT_EMPTY_PATH = 0x1000;

  private static final Libc.PointerFirst OPEN = Libc.PointerFirst.of("open");
  private static final Libc.Numbers CLOSE = Libc.Numbers.of("close");
  private static final Libc.PointerSecond READ = Libc.PointerSecond.of("read");
  private static final Libc.PointerSecond WRITE = Libc.PointerSecond.of("write");
  private static final Libc.Numbers FTRUNCATE = Libc.Numbers.of("ftruncate");
  private static final Libc.Numbers FCNTL = Libc.Numbers.of("fcntl");
  private static final Libc.Numbers FCHMOD = Libc.Numbers.of("fchmod");
  private static final Libc.PointerFirst CHMOD = Libc.PointerFirst.of("chmod");
  private static final Libc.Numbers FLOCK = Libc.Numbers.of("flock");
  private static final Libc.PointerFirst UNLINK = Libc.PointerFirst.of("unlink");
  private static final Libc.PointerSecond STATX = Libc.PointerSecond.of("statx");

  private FileCalls() {}

  static boolean isAarch64() {
    return System.getProperty("os.arch", "").toLowerCase(Locale.ROOT).equals("aarch64");
  }

  static int open(String path, int flags, int mode) {
    try (var arena = Arena.ofConfined()) {
      return (int) OPEN.call(arena.allocateFrom(path), flags, mode);
    }
  }

  static int close(int fd) {
    return (int) CLOSE.call(fd);
  }

  static long read(int fd, MemorySegment bytes, long length) {
    return READ.call(fd, bytes, length);
  }

  static long write(int fd, MemorySegment bytes, long length) {
    return WRITE.call(fd, bytes, length);
  }

  static int ftruncate(int fd, long byteSize) {
    return (int) FTRUNCATE.call(fd, byteSize);
  }

  static int fcntl(int fd, int command, int argument) {
    return (int) FCNTL.call(fd, command, argument);
  }

  static int fchmod(int fd, int mode) {
    return (int) FCHMOD.call(fd, mode);
  }

  static int chmod(String path, int mode) {
    try (var arena = Arena.ofConfined()) {
      return (int) CHMOD.call(arena.allocateFrom(path), mode, 0);
    }
  }

  static int flock(int fd, int operation) {
    return (int) FLOCK.call(fd, operation);
  }

  static int unlink(String path) {
    try (var arena = Arena.ofConfined()) {
      return (int) UNLINK.call(arena.allocateFrom(path), 0, 0);
    }
  }

  /** Fills {@code status}, see {@link FileStatus}. */
  static int statx(int directory, String path, int flags, int mask, MemorySegment status) {
    try (var arena = Arena.ofConfined()) {
      return (int) STATX.call(directory, arena.allocateFrom(path), flags, mask, status.address());
    }
  }
}
