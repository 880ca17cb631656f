package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

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

  private static final MethodHandle MEMFD_CREATE =
      CallState.bind("memfd_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
  private static final MethodHandle MMAP =
      CallState.bind(
          "mmap",
          FunctionDescriptor.of(
              ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
  private static final MethodHandle MUNMAP =
      CallState.bind("munmap", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle MADVISE =
      CallState.bind("madvise", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
  private static final MethodHandle SYSCONF =
      CallState.bind("sysconf", FunctionDescriptor.of(JAVA_LONG, JAVA_INT));

  private MemoryCalls() {}

  static int memfdCreate(String name, int flags) {
    try (var arena = Arena.ofConfined()) {
      return (int) MEMFD_CREATE.invokeExact(CallState.captured(), arena.allocateFrom(name), flags);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** Maps at an address of the kernel's choice, from the start of the file; −1 as its address. */
  static MemorySegment mmap(long byteSize, int protection, int flags, int fd) {
    try {
      return (MemorySegment)
          MMAP.invokeExact(
              CallState.captured(), MemorySegment.NULL, byteSize, protection, flags, fd, 0L);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int munmap(MemorySegment start, long byteSize) {
    try {
      return (int) MUNMAP.invokeExact(CallState.captured(), start, byteSize);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  static int madvise(MemorySegment start, long byteSize, int advice) {
    try {
      return (int) MADVISE.invokeExact(CallState.captured(), start, byteSize, advice);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }

  /** Bytes of a normal page. */
  static long pageBytes() {
    try {
      return (long) SYSCONF.invokeExact(CallState.captured(), SC_PAGESIZE);
    } catch (Throwable t) {
      throw CallState.broken(t);
    }
  }
}
