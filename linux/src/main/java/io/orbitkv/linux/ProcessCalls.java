package io.orbitkv.linux;

import java.lang.foreign.MemorySegment;

/**
 * Calls on processes and threads: getpid(2), geteuid(2), getegid(2), sched_setaffinity(2),
 * sched_getaffinity(2), and by number, since older libc lacks them, pidfd_open(2) and
 * pidfd_send_signal(2), whose numbers are the same on every machine. Each returns what libc
 * returns; after −1 the reason is {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/syscall.2.html">syscall(2)</a>
 */
final class ProcessCalls {
  private static final long SYS_PIDFD_SEND_SIGNAL = 424;
  private static final long SYS_PIDFD_OPEN = 434;
  private static final int THIS_THREAD = 0;

  private static final Libc.Numbers GETPID = Libc.Numbers.of("getpid");
  private static final Libc.Numbers GETEUID = Libc.Numbers.of("geteuid");
  private static final Libc.Numbers GETEGID = Libc.Numbers.of("getegid");
  private static final Libc.Numbers SCHED_SETAFFINITY = Libc.Numbers.of("sched_setaffinity");
  private static final Libc.Numbers SCHED_GETAFFINITY = Libc.Numbers.of("sched_getaffinity");
  private static final Libc.Numbers SYSCALL = Libc.Numbers.of("syscall");

  private ProcessCalls() {}

  static int getpid() {
    return identity(GETPID);
  }

  static int geteuid() {
    return identity(GETEUID);
  }

  static int getegid() {
    return identity(GETEGID);
  }

  private static int identity(Libc.Numbers call) {
    return (int) call.call();
  }

  static int schedSetAffinity(MemorySegment mask) {
    return (int) SCHED_SETAFFINITY.call(THIS_THREAD, mask.byteSize(), mask.address());
  }

  static int schedGetAffinity(MemorySegment mask) {
    return (int) SCHED_GETAFFINITY.call(THIS_THREAD, mask.byteSize(), mask.address());
  }

  static int pidfdOpen(int pid) {
    return (int) syscall(SYS_PIDFD_OPEN, pid, 0, 0, 0);
  }

  static int pidfdSendSignal(int pidFd, int signal) {
    return (int) syscall(SYS_PIDFD_SEND_SIGNAL, pidFd, signal, 0, 0);
  }

  private static long syscall(long number, long first, long second, long third, long fourth) {
    return SYSCALL.call(number, first, second, third, fourth, 0);
  }
}
