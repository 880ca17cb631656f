package io.orbitkv.linux;

/** A system call failed. The message names the call, the error number and the facts of the try. */
public final class LinuxException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String call;
  private final int errno;

  /**
   * Failure of one call.
   *
   * @param call name of the system call
   * @param errno its error number, see {@link Errno}
   * @param facts {@code key=value} pairs separated by commas; may be empty
   */
  public LinuxException(String call, int errno, String facts) {
    super(message(call, errno, facts));
    this.call = call;
    this.errno = errno;
  }

  /** Failure of the call that the current thread made last. */
  static LinuxException last(String call, String facts) {
    return new LinuxException(call, CallState.errno(), facts);
  }

  private static String message(String call, int errno, String facts) {
    var text = call + " failed: errno=" + errno + " (" + Errno.name(errno) + ")";
    return facts.isEmpty() ? text : text + ", " + facts;
  }

  /** Name of the system call that failed. */
  public String call() {
    return call;
  }

  /** Error number of the call, see {@link Errno}. */
  public int errno() {
    return errno;
  }
}
