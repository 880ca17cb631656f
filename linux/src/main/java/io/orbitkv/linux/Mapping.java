package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.Objects;

/**
 * Memory mapped into this process, unmapped once by {@link #close()}. Thread-safe. Borrowers get
 * the segment: after the close every access to it throws {@link IllegalStateException}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/mmap.2.html">mmap(2)</a>
 * @see <a href="https://man7.org/linux/man-pages/man2/madvise.2.html">madvise(2)</a>
 */
public final class Mapping implements AutoCloseable {
  private static final VarHandle BYTE = JAVA_BYTE.varHandle();
  private static final VarHandle INT = JAVA_INT.varHandle();

  /** What the pages of a mapping allow. */
  public enum Access {
    READ_ONLY,
    READ_WRITE
  }

  private final Arena arena;
  private final MemorySegment segment;
  private final Access access;

  private Mapping(Arena arena, MemorySegment segment, Access access) {
    this.arena = arena;
    this.segment = segment;
    this.access = access;
  }

  /**
   * Maps a file from its start, shared with all who map it. The descriptor may be closed
   * afterwards.
   *
   * @param byteSize length of the mapping, positive, at most the file's
   * @param populate whether to touch all pages before returning; as far as memory allows
   * @throws LinuxException when the kernel refuses, as for want of rights
   */
  public static Mapping map(Fd fd, long byteSize, Access access, boolean populate) {
    int flags = MemoryCalls.MAP_SHARED | (populate ? MemoryCalls.MAP_POPULATE : 0);
    return map(byteSize, access, flags, fd.value());
  }

  /**
   * Maps fresh memory of this process, all zero.
   *
   * @param byteSize length, positive
   * @param hugePageAdvice whether to ask for transparent huge pages
   * @throws LinuxException when the kernel refuses or has no transparent huge pages to ask for
   */
  public static Mapping anonymous(long byteSize, boolean hugePageAdvice) {
    int flags = MemoryCalls.MAP_PRIVATE | MemoryCalls.MAP_ANONYMOUS;
    var mapping = map(byteSize, Access.READ_WRITE, flags, -1);
    try {
      if (hugePageAdvice) {
        mapping.advise(MemoryCalls.MADV_HUGEPAGE, "MADV_HUGEPAGE");
      }
      return mapping;
    } catch (Throwable t) { // a failed create leaves nothing behind
      mapping.close();
      throw t;
    }
  }

  @SuppressWarnings({"restricted", "MustBeClosedChecker"}) // the arena is closed with the mapping
  private static Mapping map(long byteSize, Access access, int flags, int fd) {
    if (byteSize <= 0) {
      throw new IllegalArgumentException("size must be positive: byteSize=" + byteSize);
    }
    boolean writable = access == Access.READ_WRITE;
    int protection = MemoryCalls.PROT_READ | (writable ? MemoryCalls.PROT_WRITE : 0);
    var arena = Arena.ofShared();
    var start = MemoryCalls.mmap(byteSize, protection, flags, fd);
    if (start.address() == MemoryCalls.MAP_FAILED) {
      int errno = CallState.errno();
      arena.close();
      throw new LinuxException(
          "mmap", errno, "fd=" + fd + ", byteSize=" + byteSize + ", access=" + access);
    }
    var segment = start.reinterpret(byteSize, arena, Mapping::unmap);
    return new Mapping(arena, writable ? segment : segment.asReadOnly(), access);
  }

  private static void unmap(MemorySegment segment) {
    if (MemoryCalls.munmap(segment, segment.byteSize()) < 0) {
      throw LinuxException.last("munmap", "byteSize=" + segment.byteSize());
    }
  }

  /** The mapped bytes, from a page boundary on; read-only when the mapping is. */
  public MemorySegment segment() {
    return segment;
  }

  /** Length of the mapping in bytes. */
  public long byteSize() {
    return segment.byteSize();
  }

  /**
   * Keeps the mapping out of children that this process forks.
   *
   * @return this
   * @throws LinuxException when the kernel refuses
   */
  public Mapping doNotFork() {
    advise(MemoryCalls.MADV_DONTFORK, "MADV_DONTFORK");
    return this;
  }

  private void advise(int advice, String name) {
    if (MemoryCalls.madvise(segment, segment.byteSize(), advice) < 0) {
      throw LinuxException.last("madvise(" + name + ")", "byteSize=" + segment.byteSize());
    }
  }

  /**
   * Makes the pages of a range present for reading. Holds the mapping open while it runs, so
   * callers that may be closed go in steps.
   *
   * @param offset first byte
   * @param length bytes, may be 0
   * @throws LinuxException when memory runs out
   */
  public void populateRead(long offset, long length) {
    populate(offset, length, MemoryCalls.MADV_POPULATE_READ);
  }

  /**
   * Makes the pages of a range present for writing, leaving their bytes as they are; otherwise as
   * {@link #populateRead}.
   *
   * @throws UnsupportedOperationException when the mapping is read-only
   */
  public void populateWrite(long offset, long length) {
    if (access == Access.READ_ONLY) {
      throw new UnsupportedOperationException("mapping is read-only");
    }
    populate(offset, length, MemoryCalls.MADV_POPULATE_WRITE);
  }

  private void populate(long offset, long length, int advice) {
    Objects.checkFromIndexSize(offset, length, segment.byteSize());
    if (length == 0) {
      return;
    }
    long start = offset & -MemoryCalls.pageBytes();
    var range = segment.asSlice(start, offset + length - start);
    while (MemoryCalls.madvise(range, range.byteSize(), advice) < 0) {
      int errno = CallState.errno();
      if (errno == Errno.EINVAL) { // before Linux 5.14
        touch(range, advice == MemoryCalls.MADV_POPULATE_WRITE);
        return;
      }
      if (errno != Errno.EAGAIN && errno != Errno.EINTR) {
        throw new LinuxException(
            "madvise", errno, "advice=" + advice + ", offset=" + offset + ", length=" + length);
      }
    }
  }

  /**
   * Touches each page of a range that starts a page. A write adds 0 to the first four bytes, so
   * that others' writes survive; a last page shorter than that has its first byte written back.
   */
  static void touch(MemorySegment range, boolean write) {
    long pageBytes = MemoryCalls.pageBytes();
    for (long at = 0; at < range.byteSize(); at += pageBytes) {
      if (!write) {
        var _ = (byte) BYTE.getVolatile(range, at);
      } else if (range.byteSize() - at >= Integer.BYTES) {
        var _ = (int) INT.getAndAdd(range, at, 0);
      } else {
        BYTE.setVolatile(range, at, (byte) BYTE.getVolatile(range, at));
      }
    }
  }

  /**
   * Idempotent; may be called again after a failure.
   *
   * @throws IllegalStateException while a native call still holds the segment
   */
  @Override
  public synchronized void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
