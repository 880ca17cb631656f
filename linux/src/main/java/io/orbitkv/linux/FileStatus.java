package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/**
 * Identity and size of a file, from struct statx, of 256 bytes:
 *
 * <pre>
 * offset  bytes  field
 *     32      8  inode
 *     40      8  size
 *    136      4  device, major number
 *    140      4  device, minor number
 * </pre>
 *
 * @param device major number in the high half, minor in the low
 * @param inode inode number
 * @param byteSize length of the file
 * @see <a href="https://man7.org/linux/man-pages/man2/statx.2.html">statx(2)</a>
 */
record FileStatus(long device, long inode, long byteSize) {
  private static final int STATX_BYTES = 256;
  private static final int STATX_BASIC_STATS = 0x7ff;

  /** Status of an open file. */
  static FileStatus of(int fd) {
    return of(fd, "", FileCalls.AT_EMPTY_PATH);
  }

  /** Status of what a path names, a symbolic link itself included. */
  static FileStatus of(Path path) {
    return of(FileCalls.AT_FDCWD, path.toString(), FileCalls.AT_SYMLINK_NOFOLLOW);
  }

  private static FileStatus of(int directory, String path, int flags) {
    try (var arena = Arena.ofConfined()) {
      var status = arena.allocate(STATX_BYTES, Long.BYTES);
      if (FileCalls.statx(directory, path, flags, STATX_BASIC_STATS, status) < 0) {
        throw LinuxException.last("statx", path.isEmpty() ? "fd=" + directory : "path=" + path);
      }
      return parse(status);
    }
  }

  private static FileStatus parse(MemorySegment status) {
    long major = Integer.toUnsignedLong(status.get(JAVA_INT, 136));
    long minor = Integer.toUnsignedLong(status.get(JAVA_INT, 140));
    return new FileStatus(
        major << 32 | minor, status.get(JAVA_LONG, 32), status.get(JAVA_LONG, 40));
  }

  boolean isSameFile(FileStatus other) {
    return device == other.device && inode == other.inode;
  }
}
