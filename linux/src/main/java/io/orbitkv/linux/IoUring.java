package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * One io_uring: reads and writes are prepared, submitted in a batch, and complete in any order.
 * Belongs to one thread. Its descriptor is readable while completions wait, so that a thread can
 * wait for them together with other descriptors.
 *
 * <p>Memory of requests in flight must stay mapped until they complete; closing does not wait.
 *
 * <pre>
 * parameters of 120 bytes:  0 sq entries, 4 cq entries, 8 flags, 20 features, 40 sq offsets, 80 cq offsets
 * sq offsets:  0 head, 4 tail, 8 mask, 12 entries, 24 array
 * cq offsets:  0 head, 4 tail, 8 mask, 12 entries, 20 entries' start
 * submission of 64 bytes:   0 opcode u8, 4 fd i32, 8 offset, 16 address, 24 length u32, 32 user data
 * completion of 16 bytes:   0 user data, 8 result i32
 * </pre>
 *
 * @see <a href="https://man7.org/linux/man-pages/man7/io_uring.7.html">io_uring(7)</a>
 */
public final class IoUring implements AutoCloseable {
  private static final int PARAMETER_BYTES = 120;
  private static final int FEATURE_SINGLE_MMAP = 1;
  private static final long SUBMISSIONS_OFFSET = 0x1000_0000L;
  private static final int SUBMISSION_BYTES = 64;
  private static final int COMPLETION_BYTES = 16;
  private static final byte READ = 22;
  private static final byte WRITE = 23;
  private static final VarHandle INT = JAVA_INT.varHandle();

  private final Fd fd;
  private final Arena arena;
  private final MemorySegment ring;
  private final MemorySegment submissions;
  private final long sqTail;
  private final long sqHead;
  private final long sqArray;
  private final int sqMask;
  private final int sqEntries;
  private final long cqHead;
  private final long cqTail;
  private final long cqEntries;
  private final int cqMask;
  private int tail;
  private int unsubmitted;
  private long completedData;
  private int completedResult;

  private IoUring(Fd fd, Arena arena, MemorySegment parameters) {
    this.fd = fd;
    this.arena = arena;
    this.sqEntries = parameters.get(JAVA_INT, 0);
    int completions = parameters.get(JAVA_INT, 4);
    long arrayAt = parameters.get(JAVA_INT, 40 + 24);
    this.cqEntries = parameters.get(JAVA_INT, 80 + 20);
    long ringBytes =
        Math.max(
            arrayAt + (long) sqEntries * Integer.BYTES,
            cqEntries + (long) completions * COMPLETION_BYTES);
    this.ring = map(fd, arena, ringBytes, 0);
    this.submissions = map(fd, arena, (long) sqEntries * SUBMISSION_BYTES, SUBMISSIONS_OFFSET);
    this.sqHead = parameters.get(JAVA_INT, 40);
    this.sqTail = parameters.get(JAVA_INT, 40 + 4);
    this.sqMask = ring.get(JAVA_INT, parameters.get(JAVA_INT, 40 + 8));
    this.sqArray = arrayAt;
    this.cqHead = parameters.get(JAVA_INT, 80);
    this.cqTail = parameters.get(JAVA_INT, 80 + 4);
    this.cqMask = ring.get(JAVA_INT, parameters.get(JAVA_INT, 80 + 8));
    this.tail = ring.get(JAVA_INT, sqTail);
  }

  @SuppressWarnings("restricted")
  private static MemorySegment map(Fd fd, Arena arena, long byteSize, long offset) {
    int protection = MemoryCalls.PROT_READ | MemoryCalls.PROT_WRITE;
    int flags = MemoryCalls.MAP_SHARED | MemoryCalls.MAP_POPULATE;
    MemorySegment start = MemoryCalls.mmap(byteSize, protection, flags, fd.value(), offset);
    if (start.address() == MemoryCalls.MAP_FAILED) {
      throw LinuxException.last("mmap", "io_uring, byteSize=" + byteSize + ", offset=" + offset);
    }
    return start.reinterpret(
        byteSize, arena, mapped -> MemoryCalls.munmap(mapped, mapped.byteSize()));
  }

  /**
   * Why this process can have no io_uring, for a person.
   *
   * @return null when it can
   */
  public static String whyUnavailable() {
    try (IoUring probe = create(1)) {
      return probe.sqEntries > 0 ? null : "the kernel made a ring without entries";
    } catch (LinuxException e) {
      return switch (e.errno()) {
        case Errno.ENOSYS -> "the kernel has no io_uring, or a seccomp profile hides it (ENOSYS)";
        case Errno.EPERM -> "io_uring is forbidden (EPERM): " + forbiddenBy();
        default -> e.getMessage();
      };
    } catch (UnsupportedOperationException e) {
      return e.getMessage();
    }
  }

  private static String forbiddenBy() {
    try {
      String value = Files.readString(Path.of("/proc/sys/kernel/io_uring_disabled")).strip();
      return value.equals("0") ? "by a seccomp profile" : "kernel.io_uring_disabled=" + value;
    } catch (IOException e) {
      return "by a seccomp profile";
    }
  }

  /**
   * Creates a ring.
   *
   * @param entries submissions that it holds, rounded up to a power of two; twice as many
   *     completions
   * @throws LinuxException when the kernel refuses
   */
  @SuppressWarnings("MustBeClosedChecker") // the arena is closed with the ring
  public static IoUring create(int entries) {
    var arena = Arena.ofShared();
    Fd fd = null;
    try {
      MemorySegment parameters = arena.allocate(PARAMETER_BYTES, Long.BYTES);
      long raw = UringCalls.setup(entries, parameters);
      if (raw < 0) {
        throw LinuxException.last("io_uring_setup", "entries=" + entries);
      }
      fd = Fd.own((int) raw);
      if ((parameters.get(JAVA_INT, 20) & FEATURE_SINGLE_MMAP) == 0) {
        throw new LinuxException("io_uring_setup", Errno.ENOSYS, "kernel before 5.4");
      }
      return new IoUring(fd, arena, parameters);
    } catch (Throwable t) { // a failed create leaves nothing behind
      if (fd != null) {
        fd.close();
      }
      arena.close();
      throw t;
    }
  }

  /** Prepares a read; false when the ring holds no more before the next {@link #submit}. */
  public boolean tryRead(DirectFile file, long offset, MemorySegment into, int length, long data) {
    return tryPrepare(READ, file.fd(), offset, into, length, data);
  }

  /** Prepares a write; false when the ring holds no more before the next {@link #submit}. */
  public boolean tryWrite(DirectFile file, long offset, MemorySegment from, int length, long data) {
    return tryPrepare(WRITE, file.fd(), offset, from, length, data);
  }

  private boolean tryPrepare(
      byte opcode, int file, long offset, MemorySegment memory, int length, long data) {
    if (tail - (int) INT.getAcquire(ring, sqHead) >= sqEntries) {
      return false;
    }
    int index = tail & sqMask;
    MemorySegment entry = submissions.asSlice((long) index * SUBMISSION_BYTES, SUBMISSION_BYTES);
    entry.fill((byte) 0);
    entry.set(JAVA_BYTE, 0, opcode);
    entry.set(JAVA_INT, 4, file);
    entry.set(JAVA_LONG, 8, offset);
    entry.set(JAVA_LONG, 16, memory.address());
    entry.set(JAVA_INT, 24, length);
    entry.set(JAVA_LONG, 32, data);
    ring.set(JAVA_INT, sqArray + (long) index * Integer.BYTES, index);
    tail++;
    unsubmitted++;
    INT.setRelease(ring, sqTail, tail); // SYNC: submissions, with the kernel
    return true;
  }

  /**
   * Hands what was prepared to the kernel.
   *
   * @throws LinuxException when it refuses; what it has taken completes nevertheless
   */
  public void submit() {
    while (unsubmitted > 0) {
      long taken = UringCalls.enter(fd.value(), unsubmitted);
      if (taken >= 0) {
        unsubmitted -= (int) taken;
      } else if (CallState.errno() == Errno.EAGAIN) {
        return; // out of memory for now: tried again with the next one
      } else if (CallState.errno() != Errno.EINTR) {
        throw LinuxException.last("io_uring_enter", "submissions=" + unsubmitted);
      }
    }
  }

  /** Submissions that the kernel has not taken yet. */
  public int unsubmitted() {
    return unsubmitted;
  }

  /** Takes a completion; false when none waits. */
  public boolean nextCompletion() {
    int head = ring.get(JAVA_INT, cqHead);
    if (head == (int) INT.getAcquire(ring, cqTail)) { // SYNC: completions, with the kernel
      return false;
    }
    long at = cqEntries + (long) (head & cqMask) * COMPLETION_BYTES;
    completedData = ring.get(JAVA_LONG, at);
    completedResult = ring.get(JAVA_INT, at + 8);
    INT.setRelease(ring, cqHead, head + 1);
    return true;
  }

  /** What the request of the last completion was given. */
  public long data() {
    return completedData;
  }

  /** Bytes read or written by the last completion; a negative error number when it failed. */
  public int result() {
    return completedResult;
  }

  /** Descriptor that is readable while completions wait. */
  public int fd() {
    return fd.value();
  }

  /** Idempotent. */
  @Override
  public void close() {
    fd.close();
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
