package io.orbitkv.linux;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Calls on memory: memfd_create(2), mmap(2), munmap(2), madvise(2) and the page size from
 * sysconf(3). Each returns what libc returns; after −1 the reason is {@link CallState#errno()}.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/mmap.2.html">mmap(2)</a>
 */
final class MemoryCalls {
  static final long MAP_FAILED = -1;
  static final int PROT_READ = 1;
  static final int PROT_WRITE = 2;
  static final int MAP_SHARED = 0x1;
  static final int MAP_PRIVATE = 0x2;
  static final int MAP_ANONYMOUS = 0x20;
  static final int MAP_POPULATE = 0x8000;
  static final int MADV_DONTFORK = 10;
  static final int MADV_HUGEPAGE = 14;
  static final int MADV_POPULATE_READ = 22;
  static final int MADV_POPULATE_WRITE = 23;

  private static final int SC_PAGESIZE = 30;

  private static final Libc.PointerFirst MEMFD_CREATE = Libc.PointerFirst.of("memfd_create");
  private static final Libc.Numbers MMAP = Libc.Numbers.of("mmap");
  private static final Libc.PointerFirst MUNMAP = Libc.PointerFirst.of("munmap");
  private static final Libc.PointerFirst MADVISE = Libc.PointerFirst.of("madvise");
  private static final Libc.Numbers SYSCONF = Libc.Numbers.of("sysconf");

  private MemoryCalls() {}

  static int memfdCreate(String name, int flags) {
    try (var arena = Arena.ofConfined()) {
      return (int) MEMFD_CREATE.call(arena.allocateFrom(name), flags, 0);
    }
  }

  /** Maps at an address of the kernel's choice, from the start of the file; −1 as its address. */
  static MemorySegment mmap(long byteSize, int protection, int flags, int fd) {
    return mmap(byteSize, protection, flags, fd, 0);
  }

  /** As {@link #mmap(long, int, int, int)}, from an offset of the file. */
  static MemorySegment mmap(long byteSize, int protection, int flags, int fd, long offset) {
    return MemorySegment.ofAddress(MMAP.call(0, byteSize, protection, flags, fd, offset));
  }

  static int munmap(MemorySegment start, long byteSize) {
    return (int) MUNMAP.call(start, byteSize, 0);
  }

  static int madvise(MemorySegment start, long byteSize, int advice) {
    return (int) MADVISE.call(start, byteSize, advice);
  }

  /** Bytes of a normal page. */
  static long pageBytes() {
    return SYSCONF.call(SC_PAGESIZE);
  }
}
