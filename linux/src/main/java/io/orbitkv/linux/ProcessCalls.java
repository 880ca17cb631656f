package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

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

  private static final MethodHandle GETPID =
      CallState.bind("getpid", FunctionDescriptor.of(JAVA_INT));
  private static final MethodHandle GETEUID =
      CallState.bind("geteuid", FunctionDescriptor.of(JAVA_INT));
  private static final MethodHandle GETEGID =
      CallState.bind("getegid", FunctionDescriptor.of(JAVA_INT));
  private static final MethodHandle SCHED_SETAFFINITY =
      CallState.bind(
          "sched_setaffinity", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS));
  private static final MethodHandle SCHED_GETAFFINITY =
      CallState.bind(
          "sched_getaffinity", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS));
  private static final MethodHandle SYSCALL =
      CallState.bind(
          "syscall",
          FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
          Linker.Option.firstVariadicArg(1));

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

  private static int identity(MethodHandle call) {
    try {
      return (int) call.invokeExact(CallState.captured());
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int schedSetAffinity(MemorySegment mask) {
    try {
      return (int)
          SCHED_SETAFFINITY.invokeExact(CallState.captured(), THIS_THREAD, mask.byteSize(), mask);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int schedGetAffinity(MemorySegment mask) {
    try {
      return (int)
          SCHED_GETAFFINITY.invokeExact(CallState.captured(), THIS_THREAD, mask.byteSize(), mask);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int pidfdOpen(int pid) {
    return (int) syscall(SYS_PIDFD_OPEN, pid, 0, 0, 0);
  }

  static int pidfdSendSignal(int pidFd, int signal) {
    return (int) syscall(SYS_PIDFD_SEND_SIGNAL, pidFd, signal, 0, 0);
  }

  private static long syscall(long number, long first, long second, long third, long fourth) {
    try {
      return (long) SYSCALL.invokeExact(CallState.captured(), number, first, second, third, fourth);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }
}
