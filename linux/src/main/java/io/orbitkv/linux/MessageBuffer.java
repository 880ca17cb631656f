package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * One direction of a socket: a message header that points at one span of bytes and at a control
 * buffer for descriptors and credentials. Belongs to one thread at a time. The bytes are copied
 * through a buffer of its own, so callers may pass heap segments and close theirs at any time.
 *
 * <pre>
 * struct msghdr              struct cmsghdr
 * offset  bytes  field       offset  bytes  field
 *      0      8  name             0      8  length, without padding
 *      8      4  name length      8      4  level
 *     16      8  iov             12      4  type
 *     24      8  iov count       16      -  data, padded to 8 bytes
 *     32      8  control
 *     40      8  control length struct iovec: base at 0, length at 8
 *     48      4  flags
 * </pre>
 *
 * @see <a href="https://man7.org/linux/man-pages/man3/cmsg.3.html">cmsg(3)</a>
 * @see <a href="https://man7.org/linux/man-pages/man2/recvmsg.2.html">recvmsg(2)</a>
 */
final class MessageBuffer {
  static final int CAPACITY = 64 << 10;

  private static final int HEADER_BYTES = 56;
  private static final int IOV_OFFSET = 16;
  private static final int IOV_COUNT_OFFSET = 24;
  private static final int CONTROL_OFFSET = 32;
  private static final int CONTROL_LENGTH_OFFSET = 40;
  private static final int FLAGS_OFFSET = 48;
  private static final int IOV_LENGTH_OFFSET = 8;
  private static final int CMSG_DATA_OFFSET = 16;
  private static final int SCM_RIGHTS = 1;
  private static final int SCM_CREDENTIALS = 2;

  private final MemorySegment header;
  private final MemorySegment iov;
  private final MemorySegment bytes;
  private final MemorySegment control;

  /**
   * A buffer.
   *
   * @param arena whose end is the buffer's
   * @param maxFds most descriptors of one message
   */
  MessageBuffer(Arena arena, int maxFds) {
    header = arena.allocate(HEADER_BYTES, 8);
    iov = arena.allocate(16, 8);
    bytes = arena.allocate(CAPACITY, 8);
    control = arena.allocate(space((long) maxFds * Integer.BYTES) + space(Ucred.BYTES), 8);
    iov.set(ADDRESS, 0, bytes);
    header.set(ADDRESS, IOV_OFFSET, iov);
    header.set(JAVA_LONG, IOV_COUNT_OFFSET, 1);
    header.set(ADDRESS, CONTROL_OFFSET, control);
  }

  /** Bytes of a control message with its header and padding, CMSG_SPACE. */
  private static long space(long dataBytes) {
    return CMSG_DATA_OFFSET + padded(dataBytes);
  }

  private static long padded(long bytes) {
    return (bytes + 7) & -8L;
  }

  MemorySegment header() {
    return header;
  }

  /** Makes a span of bytes, cut at {@link #CAPACITY}, the next message's, without control data. */
  void load(MemorySegment source, long offset, long length) {
    long count = Math.min(length, CAPACITY);
    MemorySegment.copy(source, offset, bytes, 0, count);
    iov.set(JAVA_LONG, IOV_LENGTH_OFFSET, count);
    header.set(JAVA_LONG, CONTROL_LENGTH_OFFSET, 0);
  }

  /** Adds descriptors to the loaded message. */
  void addFds(int[] fds) {
    long data = addControl(SCM_RIGHTS, (long) fds.length * Integer.BYTES);
    MemorySegment.copy(fds, 0, control, JAVA_INT, data, fds.length);
  }

  /** Adds credentials to the loaded message. */
  void addCredentials(Ucred credentials) {
    credentials.write(control, addControl(SCM_CREDENTIALS, Ucred.BYTES));
  }

  private long addControl(int type, long dataBytes) {
    long base = header.get(JAVA_LONG, CONTROL_LENGTH_OFFSET);
    control.set(JAVA_LONG, base, CMSG_DATA_OFFSET + dataBytes);
    control.set(JAVA_INT, base + 8, SocketCalls.SOL_SOCKET);
    control.set(JAVA_INT, base + 12, type);
    header.set(JAVA_LONG, CONTROL_LENGTH_OFFSET, base + space(dataBytes));
    return base + CMSG_DATA_OFFSET;
  }

  /** Makes room for a message of at most {@code length} bytes. */
  void clear(long length) {
    iov.set(JAVA_LONG, IOV_LENGTH_OFFSET, Math.min(length, CAPACITY));
    header.set(JAVA_LONG, CONTROL_LENGTH_OFFSET, control.byteSize());
    header.set(JAVA_INT, FLAGS_OFFSET, 0);
  }

  /**
   * Takes the received message out.
   *
   * @param count bytes received
   * @throws LinuxException when control data was cut off; its descriptors are closed then
   */
  Received unload(int count, MemorySegment target, long offset) {
    var fds = new ArrayList<Fd>(0);
    try {
      var credentials = unloadControl(fds);
      checkWhole(fds.size());
      MemorySegment.copy(bytes, 0, target, offset, count);
      return new Received(count, fds, credentials);
    } catch (Throwable t) { // a failed receive leaves no descriptor behind
      fds.forEach(Fd::close);
      throw t;
    }
  }

  /** Adds the descriptors to a list; returns the credentials, or null. */
  private Ucred unloadControl(List<Fd> fds) {
    Ucred credentials = null;
    long end = header.get(JAVA_LONG, CONTROL_LENGTH_OFFSET);
    long base = 0;
    while (end - base >= CMSG_DATA_OFFSET) {
      long length = control.get(JAVA_LONG, base);
      int type = control.get(JAVA_INT, base + 12);
      if (type == SCM_RIGHTS) {
        addFds(fds, base + CMSG_DATA_OFFSET, base + length);
      } else if (type == SCM_CREDENTIALS) {
        credentials = Ucred.read(control, base + CMSG_DATA_OFFSET);
      }
      base += padded(length);
    }
    return credentials;
  }

  private void addFds(List<Fd> fds, long start, long end) {
    for (long at = start; at < end; at += Integer.BYTES) {
      fds.add(Fd.own(control.get(JAVA_INT, at)));
    }
  }

  private void checkWhole(int fdCount) {
    if ((header.get(JAVA_INT, FLAGS_OFFSET) & SocketCalls.MSG_CTRUNC) != 0) {
      throw new LinuxException(
          "recvmsg",
          Errno.EMSGSIZE,
          "flags=MSG_CTRUNC, fds=" + fdCount + ", controlBytes=" + control.byteSize());
    }
  }
}
