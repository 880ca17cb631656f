package io.orbitkv.linux;

import java.nio.file.Path;

/**
 * A Unix stream socket that listens at a path. Thread-safe: any thread may close, which ends the
 * wait of the others.
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/unix.7.html">unix(7)</a>
 * @see <a href="https://man7.org/linux/man-pages/man2/accept.2.html">accept(2)</a>
 */
public final class UnixListener implements AutoCloseable {
  private static final int BACKLOG = 128;

  private final GuardedFd fd;
  private final Path path;
  private final FileStatus bound;

  private UnixListener(Fd fd, Path path, FileStatus bound) {
    this.fd = new GuardedFd(fd);
    this.path = path;
    this.bound = bound;
  }

  /**
   * Creates the socket file and listens. The mode holds whatever the umask is, and before anybody
   * can connect.
   *
   * @param path of at most 107 bytes, where nothing exists: what does is never replaced
   * @param mode permission bits, as 0600 octal
   * @throws IllegalArgumentException when the path is too long
   * @throws LinuxException when something exists there (EADDRINUSE) or the kernel refuses; nothing
   *     is left then
   */
  public static UnixListener bind(Path path, int mode) {
    int raw = SocketCalls.listeningSocket();
    if (raw < 0) {
      throw LinuxException.last("socket", "path=" + path);
    }
    var fd = Fd.own(raw);
    try {
      if (FileCalls.fchmod(raw, mode) < 0) { // a socket's file is made with the socket's mode
        throw LinuxException.last("fchmod", facts(path, mode));
      }
      if (SocketCalls.bind(raw, path) < 0) {
        throw LinuxException.last("bind", facts(path, mode));
      }
      return listen(fd, path, mode);
    } catch (Throwable t) { // a failed bind leaves nothing behind
      fd.close();
      throw t;
    }
  }

  private static UnixListener listen(Fd fd, Path path, int mode) {
    try {
      if (FileCalls.chmod(path.toString(), mode) < 0) { // gives back what the umask took
        throw LinuxException.last("chmod", facts(path, mode));
      }
      var bound = FileStatus.of(path);
      if (SocketCalls.listen(fd.value(), BACKLOG) < 0) {
        throw LinuxException.last("listen", facts(path, mode));
      }
      return new UnixListener(fd, path, bound);
    } catch (Throwable t) {
      FileCalls.unlink(path.toString());
      throw t;
    }
  }

  private static String facts(Path path, int mode) {
    return "path=" + path + ", mode=0" + Integer.toOctalString(mode);
  }

  /**
   * Waits for the next connection.
   *
   * @param timeoutMs bound of the wait, not negative
   * @return the connection; null when the time passed, the caller left again, or this is closed
   * @throws LinuxException when the kernel refuses, as for want of descriptors (EMFILE)
   */
  public UnixConnection accept(int timeoutMs) {
    long deadlineNs = Deadline.afterMs(timeoutMs);
    if (!fd.tryEnter()) {
      return null;
    }
    try {
      if (Poll.poll(fd.raw(), Poll.IN, Deadline.leftMs(deadlineNs)) == 0 || !fd.isOpen()) {
        return null;
      }
      int raw = SocketCalls.accept(fd.raw());
      if (raw >= 0) {
        return connection(Fd.own(raw));
      }
      if (fd.isOpen() && !isPassing(CallState.errno())) {
        throw LinuxException.last("accept4", "path=" + path);
      }
      return null;
    } finally {
      fd.leave();
    }
  }

  private static UnixConnection connection(Fd fd) {
    try {
      return new UnixConnection(fd);
    } catch (Throwable t) { // for want of memory
      fd.close();
      throw t;
    }
  }

  /** Whether the listener can go on after an error: EAGAIN, EINTR, ECONNABORTED. */
  private static boolean isPassing(int errno) {
    return errno == Errno.EAGAIN || errno == Errno.EINTR || errno == Errno.ECONNABORTED;
  }

  /** Whether it was not closed. */
  public boolean isOpen() {
    return fd.isOpen();
  }

  /** Where it listens. */
  public Path path() {
    return path;
  }

  /**
   * The descriptor's number, to watch while this is open.
   *
   * @throws IllegalStateException after the close
   */
  public int fd() {
    return fd.value();
  }

  /**
   * Deletes the socket file, unless another has taken its place; open or closed.
   *
   * @return whether it was there and is deleted
   * @throws LinuxException when it cannot be deleted
   */
  public boolean unlink() {
    try {
      if (!FileStatus.of(path).isSameFile(bound)) {
        return false;
      }
    } catch (LinuxException e) {
      if (e.errno() == Errno.ENOENT) {
        return false;
      }
      throw e;
    }
    if (FileCalls.unlink(path.toString()) == 0) {
      return true;
    }
    if (CallState.errno() == Errno.ENOENT) { // another was faster
      return false;
    }
    throw LinuxException.last("unlink", "path=" + path);
  }

  /** Idempotent: ends the waits in progress and refuses connections; the file stays. */
  @Override
  public void close() {
    if (fd.tryEnter()) {
      fd.close();
      SocketCalls.shutdown(fd.raw(), SocketCalls.SHUT_RDWR);
      fd.leave();
    }
  }
}
