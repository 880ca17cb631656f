package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Signals eventfds that are shared with a process one does not trust, without ever blocking.
 * Belongs to one thread at a time; signalling allocates nothing.
 *
 * <p>O_NONBLOCK is a flag of the open file, so whoever received the descriptor can clear it, fill
 * the count and let the next write(2) wait for ever; and pwritev2(2) takes no RWF_NOWAIT for an
 * eventfd. But the kernel itself signals an eventfd when asynchronous I/O completes, whatever the
 * flags and the count are. So a signal is an empty read of /dev/null that completes at once and
 * names the eventfd.
 *
 * <p>Where the kernel has no asynchronous I/O, a signal is a write to an eventfd that has just
 * reported room: {@link #neverBlocks()} is false, since the other side may fill it in between.
 *
 * <pre>
 * struct iocb
 * offset  bytes  field
 *     16      2  opcode, 0 is a read
 *     20      4  descriptor
 *     24      8  buffer
 *     32      8  length
 *     56      4  flags
 *     60      4  eventfd
 * </pre>
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/io_submit.2.html">io_submit(2)</a>
 */
public final class Signaller implements AutoCloseable {
  private static final int EVENTS = 64;
  private static final int EVENT_BYTES = 32;
  private static final int REQUEST_BYTES = 64;
  private static final int FD_OFFSET = 20;
  private static final int FLAGS_OFFSET = 56;
  private static final int EVENTFD_OFFSET = 60;
  private static final int FLAG_EVENTFD = 1;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment request = arena.allocate(REQUEST_BYTES, 8);
  private final MemorySegment requests = arena.allocate(ADDRESS);
  private final MemorySegment events = arena.allocate((long) EVENTS * EVENT_BYTES, 8);
  private final MemorySegment zeroTime = arena.allocate(16, 8);
  private final Fd nothing;
  private final long context;

  private Signaller(Fd nothing, boolean asynchronous) {
    this.nothing = nothing;
    this.context = asynchronous ? context() : 0;
    request.set(JAVA_INT, FD_OFFSET, nothing.value());
    request.set(JAVA_INT, FLAGS_OFFSET, FLAG_EVENTFD);
    requests.set(ADDRESS, 0, request);
  }

  private long context() {
    var created = arena.allocate(JAVA_LONG);
    return AioCalls.setup(EVENTS, created) < 0 ? 0 : created.get(JAVA_LONG, 0);
  }

  /**
   * One that never blocks where the kernel allows it.
   *
   * @throws LinuxException when /dev/null cannot be opened
   */
  public static Signaller create() {
    return create(true);
  }

  /** As {@link #create()}; with {@code asynchronous} false, one that looks and writes. */
  static Signaller create(boolean asynchronous) {
    int raw = FileCalls.open("/dev/null", FileCalls.O_RDONLY | FileCalls.O_CLOEXEC, 0);
    if (raw < 0) {
      throw LinuxException.last("open", "path=/dev/null");
    }
    return new Signaller(Fd.own(raw), asynchronous);
  }

  /** Whether a signal cannot block, whatever the other side does to the eventfd. */
  public boolean neverBlocks() {
    return context != 0;
  }

  /**
   * Wakes the other side. Does nothing after the close of the eventfd.
   *
   * @throws LinuxException when the kernel refuses
   * @throws IllegalStateException after the close of this
   */
  public void signal(EventFd event) {
    if (!arena.scope().isAlive()) {
      throw new IllegalStateException("signaller is closed");
    }
    var fd = event.guarded();
    if (!fd.tryEnter()) {
      return;
    }
    try {
      if (context != 0) {
        submit(fd.raw());
      } else if (Poll.poll(fd.raw(), Poll.OUT, 0) == Poll.OUT) {
        event.signal();
      }
    } finally {
      fd.leave();
    }
  }

  private void submit(int eventFd) {
    request.set(JAVA_INT, EVENTFD_OFFSET, eventFd);
    long done = AioCalls.submit(context, 1, requests);
    if (done < 0 && CallState.errno() == Errno.EAGAIN) { // no room for another completion
      AioCalls.takeEvents(context, EVENTS, events, zeroTime);
      done = AioCalls.submit(context, 1, requests);
    }
    if (done < 0) {
      throw LinuxException.last("io_submit", "eventfd=" + eventFd);
    }
  }

  /** Idempotent; the eventfds stay open. */
  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      if (context != 0) {
        AioCalls.destroy(context);
      }
      nothing.close();
      arena.close();
    }
  }
}
