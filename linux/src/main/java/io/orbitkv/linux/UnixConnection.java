package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Objects;

/**
 * A connected Unix stream socket that carries descriptors and credentials beside bytes.
 * Thread-safe: one thread at a time sends and one receives, others wait for their turn; any thread
 * may close, which ends the calls in progress. Every wait has a bound.
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/unix.7.html">unix(7)</a>
 */
public final class UnixConnection implements AutoCloseable {
  /** Most descriptors of one {@link #send}. */
  public static final int MAX_FDS = 64;

  private static final int[] NO_FDS = {};

  private final Arena arena = Arena.ofShared();
  private final GuardedFd fd; // closes the arena too, so the buffers are used inside its calls only
  private final MessageBuffer outgoing;
  private final MessageBuffer incoming;
  private final Object sendLock = new Object();
  private final Object receiveLock = new Object();

  UnixConnection(Fd fd) {
    this(fd, MAX_FDS);
  }

  /** A connection that receives at most {@code maxReceivedFds} descriptors with one message. */
  UnixConnection(Fd fd, int maxReceivedFds) {
    try {
      this.outgoing = new MessageBuffer(arena, MAX_FDS);
      this.incoming = new MessageBuffer(arena, maxReceivedFds);
      this.fd = new GuardedFd(fd, arena);
    } catch (Throwable t) { // for want of memory
      arena.close();
      throw t;
    }
  }

  /**
   * Connects to a listener.
   *
   * @param path of at most 107 bytes
   * @param timeoutMs bound of the wait for room in the listener's queue, positive
   * @throws LinuxException when there is no socket (ENOENT), nobody listens (ECONNREFUSED), it is
   *     forbidden (EACCES) or the time passed (EAGAIN)
   */
  public static UnixConnection connect(Path path, int timeoutMs) {
    if (timeoutMs <= 0) {
      throw new IllegalArgumentException("a wait needs a bound: timeoutMs=" + timeoutMs);
    }
    int raw = SocketCalls.socket();
    if (raw < 0) {
      throw LinuxException.last("socket", "path=" + path);
    }
    var fd = Fd.own(raw);
    try {
      connect(raw, path, timeoutMs);
      return new UnixConnection(fd);
    } catch (Throwable t) { // a failed connect leaves nothing behind
      fd.close();
      throw t;
    }
  }

  private static void connect(int raw, Path path, int timeoutMs) {
    long deadlineNs = Deadline.afterMs(timeoutMs);
    do {
      limitConnect(raw, Math.max(1, Deadline.leftMs(deadlineNs)));
      if (SocketCalls.connect(raw, path) == 0) {
        return;
      }
    } while (CallState.errno() == Errno.EINTR && Deadline.leftMs(deadlineNs) > 0);
    throw LinuxException.last("connect", "path=" + path + ", timeoutMs=" + timeoutMs);
  }

  /** Bounds a blocking connect(2); sends are unaffected, since they never block. */
  private static void limitConnect(int raw, int timeoutMs) {
    try (var arena = Arena.ofConfined()) {
      var time = arena.allocate(JAVA_LONG, 2); // seconds, microseconds
      time.setAtIndex(JAVA_LONG, 0, timeoutMs / 1000);
      time.setAtIndex(JAVA_LONG, 1, timeoutMs % 1000 * 1000L);
      if (SocketCalls.setsockopt(raw, SocketCalls.SO_SNDTIMEO, time) < 0) {
        throw LinuxException.last("setsockopt(SO_SNDTIMEO)", "timeoutMs=" + timeoutMs);
      }
    }
  }

  /**
   * Sends bytes, without descriptors; see {@link #send(MemorySegment, long, long, int[], int)}.
   *
   * @throws LinuxException as there
   */
  public void send(MemorySegment bytes, long offset, long length, int timeoutMs) {
    send(bytes, offset, length, NO_FDS, timeoutMs);
  }

  /**
   * Sends all bytes, and descriptors with the first.
   *
   * @param bytes on the heap or off
   * @param length positive when there are descriptors
   * @param fds at most {@link #MAX_FDS}; open until this returns, then the receiver's copies live
   *     on
   * @param timeoutMs bound of the whole call, not negative
   * @throws LinuxException when the other side is gone (EPIPE, ECONNRESET) or the time passed
   *     (ETIMEDOUT); part of the bytes may have gone, so the connection is of no more use
   * @throws IllegalStateException when closed before
   */
  public void send(MemorySegment bytes, long offset, long length, int[] fds, int timeoutMs) {
    send(bytes, offset, length, fds, null, timeoutMs);
  }

  /**
   * As {@link #send(MemorySegment, long, long, int[], int)}, with this process's credentials beside
   * the first byte, which the kernel checks.
   *
   * @param length positive
   */
  public void sendWithCredentials(
      MemorySegment bytes, long offset, long length, int[] fds, int timeoutMs) {
    send(bytes, offset, length, fds, Ucred.ofSelf(), timeoutMs);
  }

  private void send(
      MemorySegment bytes, long offset, long length, int[] fds, Ucred credentials, int timeoutMs) {
    Objects.checkFromIndexSize(offset, length, bytes.byteSize());
    checkControl(length, fds, credentials);
    long deadlineNs = Deadline.afterMs(timeoutMs);
    synchronized (sendLock) {
      int raw = fd.enter();
      try {
        long sent = 0;
        while (sent < length) {
          outgoing.load(bytes, offset + sent, length - sent);
          if (sent == 0 && fds.length > 0) {
            outgoing.addFds(fds);
          }
          if (sent == 0 && credentials != null) {
            outgoing.addCredentials(credentials);
          }
          sent += sendSome(raw, deadlineNs, "sent=" + sent + ", length=" + length);
        }
      } finally {
        fd.leave();
      }
    }
  }

  private static void checkControl(long length, int[] fds, Ucred credentials) {
    if (fds.length > MAX_FDS) {
      throw new IllegalArgumentException(
          "too many descriptors: count=" + fds.length + ", max=" + MAX_FDS);
    }
    if (length == 0 && (fds.length > 0 || credentials != null)) {
      throw new IllegalArgumentException("descriptors and credentials need a byte to go with");
    }
  }

  private long sendSome(int raw, long deadlineNs, String facts) {
    int flags = SocketCalls.MSG_NOSIGNAL | SocketCalls.MSG_DONTWAIT;
    while (true) {
      long sent = SocketCalls.sendmsg(raw, outgoing.header(), flags);
      if (sent >= 0) {
        return sent;
      }
      int errno = CallState.errno();
      if (errno == Errno.EAGAIN) {
        int leftMs = Deadline.leftMs(deadlineNs);
        if (Poll.poll(raw, Poll.OUT, leftMs) == 0) {
          throw new LinuxException("sendmsg", Errno.ETIMEDOUT, facts);
        }
      } else if (errno != Errno.EINTR) {
        throw new LinuxException("sendmsg", errno, facts);
      }
    }
  }

  /**
   * Receives what is there, at least a byte and at most {@code length}, often less.
   *
   * @param buffer on the heap or off
   * @param length positive
   * @param timeoutMs bound of the wait, not negative
   * @return bytes and what came with them; the descriptors are the caller's. A close by another
   *     thread during the call reads as the end of the stream
   * @throws LinuxException when the other side left with bytes unread (ECONNRESET), or sent more
   *     descriptors than fit (EMSGSIZE, none is kept)
   * @throws IllegalStateException when closed before
   */
  public Received receive(MemorySegment buffer, long offset, long length, int timeoutMs) {
    Objects.checkFromIndexSize(offset, length, buffer.byteSize());
    if (length == 0) {
      throw new IllegalArgumentException("room for a byte is needed: length=0");
    }
    if (buffer.isReadOnly()) {
      throw new IllegalArgumentException("buffer is read-only");
    }
    long deadlineNs = Deadline.afterMs(timeoutMs);
    synchronized (receiveLock) {
      int raw = fd.enter();
      try {
        incoming.clear(length);
        int count = receiveSome(raw, deadlineNs);
        return count == Received.TIMED_OUT
            ? Received.TIMEOUT
            : incoming.unload(count, buffer, offset);
      } finally {
        fd.leave();
      }
    }
  }

  private int receiveSome(int raw, long deadlineNs) {
    int flags = SocketCalls.MSG_DONTWAIT | SocketCalls.MSG_CMSG_CLOEXEC;
    while (true) {
      long received = SocketCalls.recvmsg(raw, incoming.header(), flags);
      if (received >= 0) {
        return (int) received;
      }
      int errno = CallState.errno();
      if (errno == Errno.EAGAIN) {
        if (Poll.poll(raw, Poll.IN, Deadline.leftMs(deadlineNs)) == 0) {
          return Received.TIMED_OUT;
        }
      } else if (errno != Errno.EINTR) {
        throw new LinuxException("recvmsg", errno, "fd=" + raw);
      }
    }
  }

  /**
   * Makes the kernel put the sender's credentials beside what is received from now on. What was
   * sent before carries them only if its sender added them.
   *
   * @throws LinuxException when the kernel refuses
   * @throws IllegalStateException after the close
   */
  public void enablePassCredentials() {
    int raw = fd.enter();
    try (var arena = Arena.ofConfined()) {
      if (SocketCalls.setsockopt(raw, SocketCalls.SO_PASSCRED, arena.allocateFrom(JAVA_INT, 1))
          < 0) {
        throw LinuxException.last("setsockopt(SO_PASSCRED)", "fd=" + raw);
      }
    } finally {
      fd.leave();
    }
  }

  /**
   * Who connected, or for the connecting side who listens, as of that moment.
   *
   * @throws LinuxException when the kernel refuses
   * @throws IllegalStateException after the close
   */
  public Ucred peer() {
    int raw = fd.enter();
    try (var arena = Arena.ofConfined()) {
      var value = arena.allocate(Ucred.BYTES, Integer.BYTES);
      if (SocketCalls.getsockopt(raw, SocketCalls.SO_PEERCRED, value) < 0) {
        throw LinuxException.last("getsockopt(SO_PEERCRED)", "fd=" + raw);
      }
      return Ucred.read(value, 0);
    } finally {
      fd.leave();
    }
  }

  /**
   * The peer's process by descriptor, which works across PID namespaces too.
   *
   * @return the caller's to close; null when the kernel has no such thing, before Linux 6.5
   * @throws LinuxException when the kernel refuses for another reason
   * @throws IllegalStateException after the close
   */
  public Fd peerPidFd() {
    int raw = fd.enter();
    try (var arena = Arena.ofConfined()) {
      var value = arena.allocate(JAVA_INT);
      if (SocketCalls.getsockopt(raw, SocketCalls.SO_PEERPIDFD, value) == 0) {
        return Fd.own(value.get(JAVA_INT, 0));
      }
      int errno = CallState.errno();
      if (errno == Errno.ENOPROTOOPT || errno == Errno.EINVAL) {
        return null;
      }
      throw new LinuxException("getsockopt(SO_PEERPIDFD)", errno, "fd=" + raw);
    } finally {
      fd.leave();
    }
  }

  /** Ends both directions and every wait in progress; nothing happens when it has ended before. */
  public void shutdown() {
    shutdown(SocketCalls.SHUT_RDWR);
  }

  /**
   * Takes nothing more from the other side, whose sends fail from now on: the kernel draws the line
   * in one step. What had arrived before can still be received, then comes the end of the stream.
   * Sending goes on.
   */
  public void shutdownInput() {
    shutdown(SocketCalls.SHUT_RD);
  }

  private void shutdown(int directions) {
    if (fd.tryEnter()) {
      try {
        SocketCalls.shutdown(fd.raw(), directions); // fails with ENOTCONN only, harmlessly
      } finally {
        fd.leave();
      }
    }
  }

  /**
   * The descriptor's number, to watch while this is open.
   *
   * @throws IllegalStateException after the close
   */
  public int fd() {
    return fd.value();
  }

  /**
   * Idempotent: ends the calls in progress; the descriptor is closed and the buffers are freed when
   * the last has returned.
   */
  @Override
  public void close() {
    shutdown();
    fd.close();
  }
}
