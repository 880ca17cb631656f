package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
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
  static final int SHUT_RD = 0;
  static final int SHUT_RDWR = 2;
  private static final int ADDRESS_BYTES = 110;
  private static final int ADDRESS_PATH_OFFSET = 2;

  private static final Libc.Numbers SOCKET = Libc.Numbers.of("socket");
  private static final Libc.PointerFourth SOCKETPAIR = Libc.PointerFourth.of("socketpair");
  private static final Libc.PointerSecond BIND = Libc.PointerSecond.of("bind");
  private static final Libc.Numbers LISTEN = Libc.Numbers.of("listen");
  private static final Libc.Numbers ACCEPT4 = Libc.Numbers.of("accept4");
  private static final Libc.PointerSecond CONNECT = Libc.PointerSecond.of("connect");
  private static final Libc.PointerSecond SENDMSG = Libc.PointerSecond.of("sendmsg");
  private static final Libc.PointerSecond RECVMSG = Libc.PointerSecond.of("recvmsg");
  private static final Libc.Numbers SHUTDOWN = Libc.Numbers.of("shutdown");
  private static final Libc.PointerFourth GETSOCKOPT = Libc.PointerFourth.of("getsockopt");
  private static final Libc.PointerFourth SETSOCKOPT = Libc.PointerFourth.of("setsockopt");

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
    return (int) SOCKET.call(AF_UNIX, type, 0);
  }

  /** Fills {@code pair} with two connected sockets. */
  static int socketpair(int[] pair) {
    try (var arena = Arena.ofConfined()) {
      var fds = arena.allocate(JAVA_INT, 2);
      int result = (int) SOCKETPAIR.call(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds, 0);
      MemorySegment.copy(fds, JAVA_INT, 0, pair, 0, 2);
      return result;
    }
  }

  static int bind(int fd, Path path) {
    try (var arena = Arena.ofConfined()) {
      return (int) BIND.call(fd, address(arena, path), ADDRESS_BYTES);
    }
  }

  static int connect(int fd, Path path) {
    try (var arena = Arena.ofConfined()) {
      return (int) CONNECT.call(fd, address(arena, path), ADDRESS_BYTES);
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
    return (int) LISTEN.call(fd, backlog);
  }

  /** The next connection, closed on exec. */
  static int accept(int fd) {
    return (int) ACCEPT4.call(fd, 0, 0, SOCK_CLOEXEC, 0, 0);
  }

  static long sendmsg(int fd, MemorySegment header, int flags) {
    return SENDMSG.call(fd, header, flags);
  }

  static long recvmsg(int fd, MemorySegment header, int flags) {
    return RECVMSG.call(fd, header, flags);
  }

  static int shutdown(int fd, int directions) {
    return (int) SHUTDOWN.call(fd, directions);
  }

  /** Reads a socket option that fills {@code value}. */
  static int getsockopt(int fd, int option, MemorySegment value) {
    try (var arena = Arena.ofConfined()) {
      var length = arena.allocateFrom(JAVA_INT, Math.toIntExact(value.byteSize()));
      return (int) GETSOCKOPT.call(fd, SOL_SOCKET, option, value, length.address());
    }
  }

  static int setsockopt(int fd, int option, MemorySegment value) {
    return (int) SETSOCKOPT.call(fd, SOL_SOCKET, option, value, value.byteSize());
  }
}
