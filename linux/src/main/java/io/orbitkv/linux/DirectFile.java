package io.orbitkv.linux;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/**
 * A file that is read and written past the page cache (O_DIRECT). Offsets, lengths and addresses
 * are multiples of {@link #ALIGNMENT}, which every common device accepts. Reads and writes are
 * thread-safe; who closes waits for them first.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/open.2.html">open(2)</a>
 */
public final class DirectFile implements AutoCloseable {
  /** Bytes that offsets, lengths and addresses are multiples of. */
  public static final int ALIGNMENT = 4096;

  private final Fd fd;
  private final Path path;

  private DirectFile(Fd fd, Path path) {
    this.fd = fd;
    this.path = path;
  }

  /**
   * Opens a file for reading and writing, creating it if need be.
   *
   * @param mode permission bits of a new file, less the umask
   * @throws LinuxException when the kernel refuses: {@link Errno#EINVAL} where the file system has
   *     no direct I/O, ELOOP for a symbolic link
   */
  public static DirectFile open(Path path, int mode) {
    int flags =
        FileCalls.O_RDWR
            | FileCalls.O_CREAT
            | FileCalls.O_CLOEXEC
            | FileCalls.O_NOFOLLOW
            | FileCalls.O_DIRECT;
    int raw = FileCalls.open(path.toString(), flags, mode);
    if (raw < 0) {
      throw LinuxException.last("open", "path=" + path + ", flags=O_DIRECT");
    }
    return new DirectFile(Fd.own(raw), path);
  }

  /**
   * Takes the file's lock, held until it is closed or the process dies.
   *
   * @return false when another holds it
   * @see <a href="https://man7.org/linux/man-pages/man2/flock.2.html">flock(2)</a>
   */
  public boolean tryLock() {
    if (FileCalls.flock(fd.value(), FileCalls.LOCK_EX | FileCalls.LOCK_NB) == 0) {
      return true;
    }
    if (CallState.errno() != Errno.EAGAIN) {
      throw LinuxException.last("flock", "path=" + path);
    }
    return false;
  }

  /**
   * Gives the file so many bytes and reserves room on the device for all of them.
   *
   * @throws LinuxException {@link Errno#ENOSPC} when there is too little room, {@link
   *     Errno#EOPNOTSUPP} where the file system cannot reserve
   */
  public void allocate(long byteSize) {
    int result;
    do {
      result = DirectCalls.fallocate(fd.value(), 0, 0, byteSize);
    } while (result < 0 && CallState.errno() == Errno.EINTR);
    if (result < 0) {
      throw LinuxException.last("fallocate", "path=" + path + ", bytes=" + byteSize);
    }
  }

  /** Cuts the file to so many bytes. */
  public void truncate(long byteSize) {
    if (FileCalls.ftruncate(fd.value(), byteSize) < 0) {
      throw LinuxException.last("ftruncate", "path=" + path + ", bytes=" + byteSize);
    }
  }

  /** Length of the file in bytes. */
  public long byteSize() {
    return FileStatus.of(fd.value()).byteSize();
  }

  /**
   * Reads at an offset, waiting for the device.
   *
   * @return bytes read, fewer than {@code length} at the end of the file; a negative error number
   *     when it failed
   */
  public long read(long offset, MemorySegment into, long length) {
    long done;
    do {
      done = DirectCalls.pread(fd.value(), into, length, offset);
    } while (done < 0 && CallState.errno() == Errno.EINTR);
    return done < 0 ? -CallState.errno() : done;
  }

  /**
   * Writes at an offset, waiting for the device.
   *
   * @return bytes written; a negative error number when it failed
   */
  public long write(long offset, MemorySegment from, long length) {
    long done;
    do {
      done = DirectCalls.pwrite(fd.value(), from, length, offset);
    } while (done < 0 && CallState.errno() == Errno.EINTR);
    return done < 0 ? -CallState.errno() : done;
  }

  /** The open descriptor. */
  public int fd() {
    return fd.value();
  }

  /** Where the file is. */
  public Path path() {
    return path;
  }

  /** Idempotent; gives the lock up. */
  @Override
  public void close() {
    fd.close();
  }
}
