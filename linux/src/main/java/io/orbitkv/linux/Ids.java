package io.orbitkv.linux;

/**
 * Numbers of this process and its user, asked of the kernel each time: a forked child gets its own.
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/credentials.7.html">credentials(7)</a>
 */
public final class Ids {
  private Ids() {}

  /** This process in its own PID namespace. */
  public static int pid() {
    return ProcessCalls.getpid();
  }

  /** Effective user. */
  public static int uid() {
    return ProcessCalls.geteuid();
  }

  /** Effective group. */
  public static int gid() {
    return ProcessCalls.getegid();
  }
}
