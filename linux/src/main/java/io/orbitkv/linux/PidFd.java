package io.orbitkv.linux;

/**
 * A process by descriptor: unlike its number it never comes to name another process. Thread-safe.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/pidfd_open.2.html">pidfd_open(2)</a>
 * @see <a href="https://man7.org/linux/man-pages/man2/pidfd_send_signal.2.html">
 *     pidfd_send_signal(2)</a>
 */
public final class PidFd implements AutoCloseable {
  private final GuardedFd fd;

  private PidFd(Fd fd) {
    this.fd = new GuardedFd(fd);
  }

  /**
   * The process that has a number now.
   *
   * @throws LinuxException when there is none (ESRCH)
   */
  public static PidFd open(int pid) {
    int raw = ProcessCalls.pidfdOpen(pid);
    if (raw < 0) {
      throw LinuxException.last("pidfd_open", "pid=" + pid);
    }
    return new PidFd(Fd.own(raw));
  }

  /** Takes over a pidfd that came from elsewhere, as {@link UnixConnection#peerPidFd()}. */
  public static PidFd adopt(Fd fd) {
    return new PidFd(fd);
  }

  /** Whether the process has exited, waited for by its parent or not. */
  public boolean hasExited() {
    return awaitExit(0);
  }

  /**
   * Waits for the process to exit.
   *
   * @param timeoutMs bound of the wait, not negative
   * @return false when it still runs
   * @throws IllegalStateException after the close
   */
  public boolean awaitExit(int timeoutMs) {
    int raw = fd.enter();
    try {
      return (Poll.poll(raw, Poll.IN, timeoutMs) & Poll.IN) != 0;
    } finally {
      fd.leave();
    }
  }

  /**
   * Sends a signal.
   *
   * @param signal its number; 0 only checks that it could be sent
   * @throws LinuxException when the process has gone (ESRCH) or is another user's (EPERM)
   * @throws IllegalStateException after the close
   */
  public void kill(int signal) {
    int raw = fd.enter();
    try {
      if (ProcessCalls.pidfdSendSignal(raw, signal) < 0) {
        throw LinuxException.last("pidfd_send_signal", "pidfd=" + raw + ", signal=" + signal);
      }
    } finally {
      fd.leave();
    }
  }

  /**
   * The descriptor's number, to watch while this is open.
   *
   * @throws IllegalStateException after the close
   */
  public int fd() {
    return fd.value();
  }

  /** Idempotent; the process is left alone. */
  @Override
  public void close() {
    fd.close();
  }
}
