package io.orbitkv.linux;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Anonymous shared memory files whose size is sealed: whoever maps one can rely on its length,
 * since nobody can shrink the file under the mapping.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/memfd_create.2.html">memfd_create(2)</a>
 * @see <a href="https://man7.org/linux/man-pages/man2/F_GET_SEALS.2const.html">F_GET_SEALS</a>
 */
public final class Memfd {
  private static final int MFD_CLOEXEC = 0x1;
  private static final int MFD_ALLOW_SEALING = 0x2;
  private static final int MFD_HUGETLB = 0x4;
  private static final int MFD_NOEXEC_SEAL = 0x8;
  private static final int MFD_HUGE_2MB = 21 << 26;
  private static final int F_ADD_SEALS = 1033;
  private static final int F_GET_SEALS = 1034;
  private static final int F_SEAL_SEAL = 0x1;
  private static final int F_SEAL_SHRINK = 0x2;
  private static final int F_SEAL_GROW = 0x4;
  private static final int SIZE_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

  /** Pages that back a file. */
  public enum PageSize {
    /** The machine's base pages. */
    NORMAL,
    /** Pages of 2 MiB from the machine's reserved pool. */
    HUGE_2M;

    private static final long HUGE_2M_BYTES = 2L << 20;

    /** Bytes of one page, which the size of a file is a multiple of. */
    public long byteSize() {
      return this == HUGE_2M ? HUGE_2M_BYTES : MemoryCalls.pageBytes();
    }
  }

  private Memfd() {}

  /**
   * Creates a file with its size sealed; its bytes are zero.
   *
   * @param name shown in /proc/PID/maps as {@code /memfd:name}; at most 249 bytes
   * @param byteSize length, positive; with {@link PageSize#HUGE_2M} a multiple of 2 MiB
   * @throws IllegalArgumentException for another length
   * @throws LinuxException when the kernel refuses, as for want of huge pages; nothing is left then
   */
  public static Fd create(String name, long byteSize, PageSize pages) {
    checkSize(byteSize, pages);
    var fd = Fd.own(open(name, pages));
    try {
      if (FileCalls.ftruncate(fd.value(), byteSize) < 0) {
        throw LinuxException.last("ftruncate", facts(name, byteSize, pages));
      }
      if (FileCalls.fcntl(fd.value(), F_ADD_SEALS, SIZE_SEALS) < 0) {
        throw LinuxException.last("fcntl(F_ADD_SEALS)", facts(name, byteSize, pages));
      }
      if (pages == PageSize.HUGE_2M) {
        reserve(fd, name, byteSize);
      }
      return fd;
    } catch (Throwable t) { // a failed create leaves nothing behind
      fd.close();
      throw t;
    }
  }

  private static void checkSize(long byteSize, PageSize pages) {
    if (byteSize <= 0) {
      throw new IllegalArgumentException("size must be positive: byteSize=" + byteSize);
    }
    if (pages == PageSize.HUGE_2M && byteSize % PageSize.HUGE_2M_BYTES != 0) {
      throw new IllegalArgumentException(
          "size must be a multiple of the huge page: byteSize="
              + byteSize
              + ", pageBytes="
              + PageSize.HUGE_2M_BYTES);
    }
  }

  private static int open(String name, PageSize pages) {
    int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    if (pages == PageSize.HUGE_2M) {
      flags |= MFD_HUGETLB | MFD_HUGE_2MB;
    }
    int raw = MemoryCalls.memfdCreate(name, flags | MFD_NOEXEC_SEAL);
    if (raw < 0 && CallState.errno() == Errno.EINVAL) { // before Linux 6.3
      raw = MemoryCalls.memfdCreate(name, flags);
    }
    if (raw < 0) {
      throw LinuxException.last("memfd_create", "name=" + name + ", pages=" + pages);
    }
    return raw;
  }

  /**
   * Reserves all huge pages of the file: mapping it does, the reservation stays with the file, and
   * without it the first touch of a missing page would be fatal.
   */
  private static void reserve(Fd fd, String name, long byteSize) {
    var start =
        MemoryCalls.mmap(
            byteSize,
            MemoryCalls.PROT_READ | MemoryCalls.PROT_WRITE,
            MemoryCalls.MAP_SHARED,
            fd.value());
    if (start.address() == MemoryCalls.MAP_FAILED) {
      int errno = CallState.errno();
      throw new LinuxException(
          "mmap",
          errno,
          facts(name, byteSize, PageSize.HUGE_2M) + ", freeHugePages=" + freeHugePages());
    }
    MemoryCalls.munmap(start, byteSize);
  }

  private static String freeHugePages() {
    try {
      var free = Path.of("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
      return Files.readString(free).strip();
    } catch (IOException | UncheckedIOException e) {
      return "unknown";
    }
  }

  private static String facts(String name, long byteSize, PageSize pages) {
    return "name=" + name + ", byteSize=" + byteSize + ", pages=" + pages;
  }

  /**
   * Opens the same file again for reading only, so that it cannot be mapped writable through the
   * new descriptor. A guard against mistakes: the same user could reopen the file for writing.
   *
   * @throws LinuxException when it cannot be opened
   */
  public static Fd reopenReadOnly(Fd fd) {
    int flags = FileCalls.O_RDONLY | FileCalls.O_CLOEXEC;
    int raw = FileCalls.open("/proc/self/fd/" + fd.value(), flags, 0);
    if (raw < 0) {
      throw LinuxException.last("open", "path=/proc/self/fd/" + fd.value());
    }
    return Fd.own(raw);
  }

  /**
   * Checks a received file before it is mapped: an unsealed one could shrink under the mapping, and
   * the next access would end the process.
   *
   * @param expectedByteSize length that the sender named
   * @throws IllegalArgumentException when a seal is missing or the size differs
   * @throws LinuxException when the file cannot have seals at all
   */
  public static void checkSealed(Fd fd, long expectedByteSize) {
    int seals = FileCalls.fcntl(fd.value(), F_GET_SEALS, 0);
    if (seals < 0) {
      throw LinuxException.last("fcntl(F_GET_SEALS)", "fd=" + fd.value());
    }
    long byteSize = byteSize(fd);
    if ((seals & SIZE_SEALS) != SIZE_SEALS || byteSize != expectedByteSize) {
      throw new IllegalArgumentException(
          "file is not sealed as expected: seals=0x%x, wantedSeals=0x%x, byteSize=%d, wantedByteSize=%d"
              .formatted(seals, SIZE_SEALS, byteSize, expectedByteSize));
    }
  }

  /**
   * Length of an open file.
   *
   * @throws LinuxException when it cannot be read
   */
  public static long byteSize(Fd fd) {
    return FileStatus.of(fd.value()).byteSize();
  }
}
