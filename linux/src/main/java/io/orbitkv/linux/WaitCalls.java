package io.orbitkv.linux;

import java.lang.foreign.MemorySegment;

/**
 * Calls that wait and wake: poll(2), epoll_create1(2), epoll_ctl(2), epoll_wait(2) and eventfd(2).
 * Each returns what libc returns; after −1 the reason is {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/epoll.7.html">epoll(7)</a>
 */
final class WaitCalls {
  static final int EPOLL_CTL_ADD = 1;
  static final int EPOLL_CTL_DEL = 2;

  private static final int EPOLL_CLOEXEC = 0x80000;
  private static final int EFD_CLOEXEC = 0x80000;
  private static final int EFD_NONBLOCK = 0x800;

  private static final Libc.PointerFirst POLL = Libc.PointerFirst.of("poll");
  private static final Libc.Numbers EPOLL_CREATE1 = Libc.Numbers.of("epoll_create1");
  private static final Libc.PointerFourth EPOLL_CTL = Libc.PointerFourth.of("epoll_ctl");
  private static final Libc.PointerSecond EPOLL_WAIT = Libc.PointerSecond.of("epoll_wait");
  private static final Libc.Numbers EVENTFD = Libc.Numbers.of("eventfd");

  private WaitCalls() {}

  static int poll(MemorySegment fds, int count, int timeoutMs) {
    return (int) POLL.call(fds, count, timeoutMs);
  }

  static int epollCreate() {
    return (int) EPOLL_CREATE1.call(EPOLL_CLOEXEC);
  }

  static int epollControl(int epoll, int operation, int fd, MemorySegment event) {
    return (int) EPOLL_CTL.call(epoll, operation, fd, event, 0);
  }

  static int epollWait(int epoll, MemorySegment events, int maxEvents, int timeoutMs) {
    return (int) EPOLL_WAIT.call(epoll, events, maxEvents, timeoutMs, 0);
  }

  static int eventfd() {
    return (int) EVENTFD.call(0, EFD_CLOEXEC | EFD_NONBLOCK);
  }
}
