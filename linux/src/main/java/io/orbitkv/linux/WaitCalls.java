package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

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

  private static final MethodHandle POLL =
      CallState.bind("poll", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
  private static final MethodHandle EPOLL_CREATE1 =
      CallState.bind("epoll_create1", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
  private static final MethodHandle EPOLL_CTL =
      CallState.bind(
          "epoll_ctl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS));
  private static final MethodHandle EPOLL_WAIT =
      CallState.bind(
          "epoll_wait", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));
  private static final MethodHandle EVENTFD =
      CallState.bind("eventfd", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));

  private WaitCalls() {}

  static int poll(MemorySegment fds, int count, int timeoutMs) {
    try {
      return (int) POLL.invokeExact(CallState.captured(), fds, (long) count, timeoutMs);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int epollCreate() {
    try {
      return (int) EPOLL_CREATE1.invokeExact(CallState.captured(), EPOLL_CLOEXEC);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int epollControl(int epoll, int operation, int fd, MemorySegment event) {
    try {
      return (int) EPOLL_CTL.invokeExact(CallState.captured(), epoll, operation, fd, event);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int epollWait(int epoll, MemorySegment events, int maxEvents, int timeoutMs) {
    try {
      return (int)
          EPOLL_WAIT.invokeExact(CallState.captured(), epoll, events, maxEvents, timeoutMs);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int eventfd() {
    try {
      return (int) EVENTFD.invokeExact(CallState.captured(), 0, EFD_CLOEXEC | EFD_NONBLOCK);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }
}
