package io.orbitkv.linux;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A file whose lock at most one process holds, until it closes it or dies, with the holder's pid
 * inside. Thread-safe.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/flock.2.html">flock(2)</a>
 */
public final class LockFile implements AutoCloseable {
  private static final int MAX_ATTEMPTS = 100;

  private final Fd fd;
  private final Path path;
  private boolean closed;

  private LockFile(Fd fd, Path path) {
    this.fd = fd;
    this.path = path;
  }

  /**
   * Takes the lock if nobody holds it, creating the file if need be.
   *
   * @param mode permission bits of a new file, less the umask
   * @return the lock; null when another process, or another part of this one, holds it
   * @throws LinuxException when the file cannot be opened (a symbolic link is refused, ELOOP) or
   *     written
   */
  public static LockFile tryLock(Path path, int mode) {
    for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      var fd = open(path, mode);
      try {
        if (!tryLock(fd, path)) {
          fd.close();
          return null;
        }
        if (names(path, fd)) {
          return holding(new LockFile(fd, path));
        }
        fd.close(); // the former holder deleted this file between our open and our lock
      } catch (Throwable t) {
        fd.close();
        throw t;
      }
    }
    throw new LinuxException("flock", Errno.EAGAIN, "path=" + path + " keeps being replaced");
  }

  private static Fd open(Path path, int mode) {
    int flags = FileCalls.O_RDWR | FileCalls.O_CREAT | FileCalls.O_CLOEXEC | FileCalls.O_NOFOLLOW;
    int raw = FileCalls.open(path.toString(), flags, mode);
    if (raw < 0) {
      throw LinuxException.last("open", "path=" + path);
    }
    return Fd.own(raw);
  }

  private static boolean tryLock(Fd fd, Path path) {
    if (FileCalls.flock(fd.value(), FileCalls.LOCK_EX | FileCalls.LOCK_NB) == 0) {
      return true;
    }
    if (CallState.errno() != Errno.EAGAIN) {
      throw LinuxException.last("flock", "path=" + path);
    }
    return false;
  }

  /** Whether the path still names the open file. */
  private static boolean names(Path path, Fd fd) {
    try {
      return FileStatus.of(path).isSameFile(FileStatus.of(fd.value()));
    } catch (LinuxException e) {
      if (e.errno() == Errno.ENOENT) {
        return false;
      }
      throw e;
    }
  }

  private static LockFile holding(LockFile lock) {
    try {
      lock.writePid();
      return lock;
    } catch (Throwable t) { // a failed lock leaves nothing behind
      lock.close();
      throw t;
    }
  }

  private void writePid() {
    byte[] text = (Ids.pid() + "\n").getBytes(StandardCharsets.US_ASCII);
    try (var arena = Arena.ofConfined()) {
      var bytes = arena.allocate(text.length);
      bytes.asByteBuffer().put(text);
      if (FileCalls.ftruncate(fd.value(), 0) < 0
          || FileCalls.write(fd.value(), bytes, text.length) < 0) {
        throw LinuxException.last("write", "path=" + path);
      }
    }
  }

  /**
   * Pid that the last holder wrote, for messages: the lock alone tells whether it still holds.
   *
   * @return 0 when the file is absent, unreadable or has no pid inside
   */
  public static int holderPid(Path path) {
    try {
      return Math.max(0, Integer.parseInt(Files.readString(path).strip()));
    } catch (IOException | NumberFormatException e) {
      return 0;
    }
  }

  /** The locked file. */
  public Path path() {
    return path;
  }

  /** Deletes the file while still holding the lock, then gives the lock up. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    try (fd) {
      if (names(path, fd) && FileCalls.unlink(path.toString()) < 0) {
        throw LinuxException.last("unlink", "path=" + path);
      }
    }
  }
}
