package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Locale;
import java.util.Objects;

/**
 * Waits on many descriptors until one has something to read, level-triggered unless told otherwise.
 * Belongs to one thread; waiting and reading the result allocate nothing.
 *
 * <p>An event, struct epoll_event, holds the events at 0 (4 bytes) and the token (8 bytes) at 4 on
 * x86-64, where it is packed, and at 8 elsewhere.
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/epoll.7.html">epoll(7)</a>
 */
public final class Epoll implements AutoCloseable {
  /** Most descriptors that one wait reports; the others follow with the next. */
  public static final int MAX_READY = 64;

  private static final int EPOLLET = 1 << 31;
  private static final long TOKEN_OFFSET = isPacked() ? 4 : 8;
  private static final long EVENT_BYTES = TOKEN_OFFSET + Long.BYTES;

  private final Fd fd;
  private final Arena arena = Arena.ofAuto();
  private final MemorySegment events = arena.allocate(MAX_READY * EVENT_BYTES, Long.BYTES);
  private final MemorySegment change = arena.allocate(EVENT_BYTES, Long.BYTES);
  private int readyCount;

  private Epoll(Fd fd) {
    this.fd = fd;
  }

  private static boolean isPacked() {
    var machine = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
    return machine.equals("amd64") || machine.equals("x86_64");
  }

  /**
   * An empty set.
   *
   * @throws LinuxException when the kernel refuses
   */
  public static Epoll create() {
    int raw = WaitCalls.epollCreate();
    if (raw < 0) {
      throw LinuxException.last("epoll_create1", "");
    }
    return new Epoll(Fd.own(raw));
  }

  /**
   * Watches a descriptor for {@link Poll#IN}; {@link Poll#ERROR} and {@link Poll#HANG_UP} are
   * reported unasked.
   *
   * @param token what {@link #token} reports for it
   * @throws LinuxException when it is not open, is watched already or cannot be watched
   */
  public void add(int fd, long token) {
    add(fd, Poll.IN, token);
  }

  /**
   * As {@link #add}, but edge-triggered: a descriptor is reported once for what came since the last
   * wait and need never be read, so a signal of an {@link EventFd} costs its receiver no drain.
   */
  public void addEdge(int fd, long token) {
    add(fd, Poll.IN | EPOLLET, token);
  }

  private void add(int fd, int wanted, long token) {
    change.set(JAVA_INT, 0, wanted);
    change.set(JAVA_LONG_UNALIGNED, TOKEN_OFFSET, token);
    control(WaitCalls.EPOLL_CTL_ADD, fd, "epoll_ctl(EPOLL_CTL_ADD)");
  }

  /**
   * Stops watching a descriptor; done before the descriptor is closed. The last wait's result may
   * still name it.
   *
   * @throws LinuxException when it is not watched
   */
  public void remove(int fd) {
    control(WaitCalls.EPOLL_CTL_DEL, fd, "epoll_ctl(EPOLL_CTL_DEL)");
  }

  private void control(int operation, int watched, String call) {
    if (WaitCalls.epollControl(fd.value(), operation, watched, change) < 0) {
      throw LinuxException.last(call, "fd=" + watched);
    }
  }

  /**
   * Waits until a watched descriptor is ready.
   *
   * @param timeoutMs bound of the wait, not negative; 0 only looks
   * @return how many are ready, at most {@link #MAX_READY}; 0 when the time passed
   */
  public int await(int timeoutMs) {
    long deadlineNs = Deadline.afterMs(timeoutMs);
    int leftMs = timeoutMs;
    readyCount = 0;
    int count = WaitCalls.epollWait(fd.value(), events, MAX_READY, leftMs);
    while (count < 0) {
      if (CallState.errno() != Errno.EINTR) {
        throw LinuxException.last("epoll_wait", "timeoutMs=" + timeoutMs);
      }
      leftMs = Deadline.leftMs(deadlineNs);
      count = WaitCalls.epollWait(fd.value(), events, MAX_READY, leftMs);
    }
    readyCount = count;
    return count;
  }

  /**
   * Token of a ready descriptor.
   *
   * @param i below the result of the last {@link #await}
   */
  public long token(int i) {
    Objects.checkIndex(i, readyCount);
    return events.get(JAVA_LONG_UNALIGNED, i * EVENT_BYTES + TOKEN_OFFSET);
  }

  /**
   * Events of a ready descriptor, as {@link Poll#IN}.
   *
   * @param i below the result of the last {@link #await}
   */
  public int events(int i) {
    Objects.checkIndex(i, readyCount);
    return events.get(JAVA_INT, i * EVENT_BYTES);
  }

  /** Idempotent; the watched descriptors stay open. */
  @Override
  public void close() {
    fd.close();
  }
}
