package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A wake-up between threads or processes: signals are counted until somebody drains them. Any
 * number of threads may signal; one at a time drains or waits; any thread may close. Signalling and
 * draining allocate nothing. They never block while O_NONBLOCK is set, which whoever shares the
 * descriptor can change: towards a process that is not trusted, signal through {@link Signaller}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/eventfd.2.html">eventfd(2)</a>
 */
public final class EventFd implements AutoCloseable {
  private static final MemorySegment ONE = Arena.global().allocateFrom(JAVA_LONG, 1).asReadOnly();

  private final GuardedFd fd;
  private final MemorySegment count = Arena.ofAuto().allocate(JAVA_LONG);

  private EventFd(Fd fd) {
    this.fd = new GuardedFd(fd);
  }

  /**
   * A new one, without signals.
   *
   * @throws LinuxException when the kernel refuses
   */
  public static EventFd create() {
    int raw = WaitCalls.eventfd();
    if (raw < 0) {
      throw LinuxException.last("eventfd", "");
    }
    return new EventFd(Fd.own(raw));
  }

  /**
   * Takes over a received one and makes it non-blocking, whatever its creator chose. Closes it when
   * that fails.
   *
   * @throws LinuxException when the descriptor cannot be adjusted
   */
  public static EventFd adopt(Fd fd) {
    int flags = FileCalls.fcntl(fd.value(), FileCalls.F_GETFL, 0);
    int wanted = flags | FileCalls.O_NONBLOCK;
    if (flags < 0
        || (flags != wanted && FileCalls.fcntl(fd.value(), FileCalls.F_SETFL, wanted) < 0)) {
      var failure = LinuxException.last("fcntl(O_NONBLOCK)", "fd=" + fd.value());
      fd.close();
      throw failure;
    }
    return new EventFd(fd);
  }

  /** Wakes the other side. Does nothing when signals abound (EAGAIN) or after the close. */
  public void signal() {
    if (!fd.tryEnter()) {
      return;
    }
    try {
      long written = FileCalls.write(fd.raw(), ONE, Long.BYTES);
      if (written < 0 && !isHarmless(CallState.errno())) {
        throw LinuxException.last("write", "eventfd=" + fd.raw());
      }
    } finally {
      fd.leave();
    }
  }

  /**
   * Takes all signals.
   *
   * @return whether there were any
   * @throws IllegalStateException after the close
   */
  public boolean drain() {
    int raw = fd.enter();
    try {
      return drain(raw);
    } finally {
      fd.leave();
    }
  }

  private boolean drain(int raw) {
    long read = FileCalls.read(raw, count, Long.BYTES);
    if (read < 0 && !isHarmless(CallState.errno())) {
      throw LinuxException.last("read", "eventfd=" + raw);
    }
    return read == Long.BYTES;
  }

  private static boolean isHarmless(int errno) {
    return errno == Errno.EAGAIN || errno == Errno.EINTR;
  }

  /**
   * Waits for a signal and takes all.
   *
   * @param timeoutMs bound of the wait, not negative
   * @return false when the time passed
   * @throws IllegalStateException after the close
   */
  public boolean await(int timeoutMs) {
    int raw = fd.enter();
    try {
      return Poll.poll(raw, Poll.IN, timeoutMs) != 0 && drain(raw);
    } finally {
      fd.leave();
    }
  }

  /** The descriptor, for {@link Signaller}. */
  GuardedFd guarded() {
    return fd;
  }

  /**
   * The descriptor's number, to send or to watch while this is open.
   *
   * @throws IllegalStateException after the close
   */
  public int fd() {
    return fd.value();
  }

  /** Idempotent; the descriptor is closed when the last call in progress has returned. */
  @Override
  public void close() {
    fd.close();
  }
}
