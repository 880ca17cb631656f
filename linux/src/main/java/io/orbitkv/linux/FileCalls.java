package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
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
  static final int F_GETFL = 3;
  static final int F_SETFL = 4;
  static final int LOCK_EX = 2;
  static final int LOCK_NB = 4;
  static final int AT_FDCWD = -100;
  static final int AT_SYMLINK_NOFOLLOW = 0x100;
  static final int AT_EMPTY_PATH = 0x1000;

  private static final MethodHandle OPEN =
      CallState.bind(
          "open",
          FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
          Linker.Option.firstVariadicArg(2));
  private static final MethodHandle CLOSE =
      CallState.bind("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
  private static final MethodHandle READ =
      CallState.bind("read", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle WRITE =
      CallState.bind("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle FTRUNCATE =
      CallState.bind("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
  private static final MethodHandle FCNTL =
      CallState.bind(
          "fcntl",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
          Linker.Option.firstVariadicArg(2));
  private static final MethodHandle FCHMOD =
      CallState.bind("fchmod", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle CHMOD =
      CallState.bind("chmod", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle FLOCK =
      CallState.bind("flock", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle UNLINK =
      CallState.bind("unlink", FunctionDescriptor.of(JAVA_INT, ADDRESS));
  private static final MethodHandle STATX =
      CallState.bind(
          "statx", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS));

  private FileCalls() {}

  static boolean isAarch64() {
    return System.getProperty("os.arch", "").toLowerCase(Locale.ROOT).equals("aarch64");
  }

  static int open(String path, int flags, int mode) {
    try (var arena = Arena.ofConfined()) {
      return (int) OPEN.invokeExact(CallState.captured(), arena.allocateFrom(path), flags, mode);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int close(int fd) {
    try {
      return (int) CLOSE.invokeExact(CallState.captured(), fd);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static long read(int fd, MemorySegment bytes, long length) {
    try {
      return (long) READ.invokeExact(CallState.captured(), fd, bytes, length);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static long write(int fd, MemorySegment bytes, long length) {
    try {
      return (long) WRITE.invokeExact(CallState.captured(), fd, bytes, length);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int ftruncate(int fd, long byteSize) {
    try {
      return (int) FTRUNCATE.invokeExact(CallState.captured(), fd, byteSize);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int fcntl(int fd, int command, int argument) {
    try {
      return (int) FCNTL.invokeExact(CallState.captured(), fd, command, argument);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int fchmod(int fd, int mode) {
    try {
      return (int) FCHMOD.invokeExact(CallState.captured(), fd, mode);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int chmod(String path, int mode) {
    try (var arena = Arena.ofConfined()) {
      return (int) CHMOD.invokeExact(CallState.captured(), arena.allocateFrom(path), mode);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int flock(int fd, int operation) {
    try {
      return (int) FLOCK.invokeExact(CallState.captured(), fd, operation);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int unlink(String path) {
    try (var arena = Arena.ofConfined()) {
      return (int) UNLINK.invokeExact(CallState.captured(), arena.allocateFrom(path));
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** Fills {@code status}, see {@link FileStatus}. */
  static int statx(int directory, String path, int flags, int mask, MemorySegment status) {
    try (var arena = Arena.ofConfined()) {
      return (int)
          STATX.invokeExact(
              CallState.captured(), directory, arena.allocateFrom(path), flags, mask, status);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }
}
