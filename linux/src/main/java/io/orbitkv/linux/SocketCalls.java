package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Calls on Unix stream sockets: socket(2), socketpair(2), bind(2), listen(2), accept4(2),
 * connect(2), sendmsg(2), recvmsg(2), shutdown(2), getsockopt(2) and setsockopt(2). Each returns
 * what libc returns; after −1 the reason is {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/unix.7.html">unix(7)</a>
 */
final class SocketCalls {
  /** Longest path of a socket in bytes: sockaddr_un holds 108 with the closing zero. */
  static final int MAX_PATH_BYTES = 107;

  static final int SOL_SOCKET = 1;
  static final int SO_PASSCRED = 16;
  static final int SO_PEERCRED = 17;
  static final int SO_SNDTIMEO = 21;
  static final int SO_PEERPIDFD = 77;
  static final int MSG_CTRUNC = 0x8;
  static final int MSG_DONTWAIT = 0x40;
  static final int MSG_NOSIGNAL = 0x4000;
  static final int MSG_CMSG_CLOEXEC = 0x40000000;

  private static final int AF_UNIX = 1;
  private static final int SOCK_STREAM = 1;
  private static final int SOCK_NONBLOCK = 0x800;
  private static final int SOCK_CLOEXEC = 0x80000;
  private static final int SHUT_RDWR = 2;
  private static final int ADDRESS_BYTES = 110;
  private static final int ADDRESS_PATH_OFFSET = 2;

  private static final MethodHandle SOCKET =
      CallState.bind("socket", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle SOCKETPAIR =
      CallState.bind(
          "socketpair", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS));
  private static final MethodHandle BIND =
      CallState.bind("bind", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle LISTEN =
      CallState.bind("listen", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle ACCEPT4 =
      CallState.bind(
          "accept4", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
  private static final MethodHandle CONNECT =
      CallState.bind("connect", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle SENDMSG =
      CallState.bind("sendmsg", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle RECVMSG =
      CallState.bind("recvmsg", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle SHUTDOWN =
      CallState.bind("shutdown", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle GETSOCKOPT =
      CallState.bind(
          "getsockopt",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
  private static final MethodHandle SETSOCKOPT =
      CallState.bind(
          "setsockopt",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));

  private SocketCalls() {}

  /** A stream socket that blocks; closed on exec. */
  static int socket() {
    return socket(SOCK_STREAM | SOCK_CLOEXEC);
  }

  /** A stream socket whose accept(2) never blocks; closed on exec. */
  static int listeningSocket() {
    return socket(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  }

  private static int socket(int type) {
    try {
      return (int) SOCKET.invokeExact(CallState.captured(), AF_UNIX, type, 0);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** Fills {@code pair} with two connected sockets. */
  static int socketpair(int[] pair) {
    try (var arena = Arena.ofConfined()) {
      var fds = arena.allocate(JAVA_INT, 2);
      int result =
          (int)
              SOCKETPAIR.invokeExact(
                  CallState.captured(), AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
      MemorySegment.copy(fds, JAVA_INT, 0, pair, 0, 2);
      return result;
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int bind(int fd, Path path) {
    try (var arena = Arena.ofConfined()) {
      return (int) BIND.invokeExact(CallState.captured(), fd, address(arena, path), ADDRESS_BYTES);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int connect(int fd, Path path) {
    try (var arena = Arena.ofConfined()) {
      return (int)
          CONNECT.invokeExact(CallState.captured(), fd, address(arena, path), ADDRESS_BYTES);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** Socket address of a path; an {@link IllegalArgumentException} when the path is too long. */
  private static MemorySegment address(Arena arena, Path path) {
    byte[] name = path.toString().getBytes(StandardCharsets.UTF_8);
    if (name.length == 0 || name.length > MAX_PATH_BYTES) {
      throw new IllegalArgumentException(
          "socket path must have 1 to "
              + MAX_PATH_BYTES
              + " bytes: bytes="
              + name.length
              + ", path="
              + path);
    }
    var address = arena.allocate(ADDRESS_BYTES, Short.BYTES);
    address.set(JAVA_SHORT, 0, (short) AF_UNIX);
    MemorySegment.copy(MemorySegment.ofArray(name), 0, address, ADDRESS_PATH_OFFSET, name.length);
    return address;
  }

  static int listen(int fd, int backlog) {
    try {
      return (int) LISTEN.invokeExact(CallState.captured(), fd, backlog);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** The next connection, closed on exec. */
  static int accept(int fd) {
    try {
      return (int)
          ACCEPT4.invokeExact(
              CallState.captured(), fd, MemorySegment.NULL, MemorySegment.NULL, SOCK_CLOEXEC);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static long sendmsg(int fd, MemorySegment header, int flags) {
    try {
      return (long) SENDMSG.invokeExact(CallState.captured(), fd, header, flags);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static long recvmsg(int fd, MemorySegment header, int flags) {
    try {
      return (long) RECVMSG.invokeExact(CallState.captured(), fd, header, flags);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int shutdown(int fd) {
    try {
      return (int) SHUTDOWN.invokeExact(CallState.captured(), fd, SHUT_RDWR);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** Reads a socket option that fills {@code value}. */
  static int getsockopt(int fd, int option, MemorySegment value) {
    try (var arena = Arena.ofConfined()) {
      var length = arena.allocateFrom(JAVA_INT, Math.toIntExact(value.byteSize()));
      return (int)
          GETSOCKOPT.invokeExact(CallState.captured(), fd, SOL_SOCKET, option, value, length);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int setsockopt(int fd, int option, MemorySegment value) {
    try {
      return (int)
          SETSOCKOPT.invokeExact(
              CallState.captured(),
              fd,
              SOL_SOCKET,
              option,
              value,
              Math.toIntExact(value.byteSize()));
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }
}
