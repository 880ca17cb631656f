package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;

/**
 * On which processors the current thread may run. Platform threads only: a virtual thread would pin
 * its carrier.
 *
 * @see <a href="https://man7.org/linux/man-pages/man2/sched_setaffinity.2.html">
 *     sched_setaffinity(2)</a>
 */
public final class Affinity {
  /** Bits of the mask, the most processors that Linux is built for. */
  private static final int MAX_CPUS = 8192;

  private Affinity() {}

  /**
   * Processors the current thread may run on, ascending.
   *
   * @throws LinuxException when the kernel refuses
   */
  public static int[] allowedCpus() {
    try (var arena = Arena.ofConfined()) {
      var mask = mask(arena);
      if (ProcessCalls.schedGetAffinity(mask) < 0) {
        throw LinuxException.last("sched_getaffinity", "");
      }
      return BitSet.valueOf(mask.toArray(JAVA_BYTE)).stream().toArray();
    }
  }

  /**
   * Keeps the current thread on one processor.
   *
   * @throws LinuxException when the processor does not exist or is not allowed (EINVAL)
   */
  public static void pinCurrentThread(int cpu) {
    restore(cpu);
  }

  /**
   * Lets the current thread run on several processors, as those {@link #allowedCpus()} returned
   * before.
   *
   * @throws LinuxException when none of them exists and is allowed (EINVAL)
   */
  public static void restore(int... cpus) {
    var bits = new BitSet();
    for (int cpu : cpus) {
      if (cpu < 0 || cpu >= MAX_CPUS) {
        throw new IllegalArgumentException("no such processor: cpu=" + cpu + ", max=" + MAX_CPUS);
      }
      bits.set(cpu);
    }
    try (var arena = Arena.ofConfined()) {
      var mask = mask(arena);
      mask.copyFrom(MemorySegment.ofArray(bits.toByteArray()));
      if (ProcessCalls.schedSetAffinity(mask) < 0) {
        throw LinuxException.last("sched_setaffinity", "cpus=" + bits);
      }
    }
  }

  /** An empty mask: little-endian, so processor n is bit n % 8 of byte n / 8. */
  private static MemorySegment mask(Arena arena) {
    return arena.allocate(MAX_CPUS / Byte.SIZE, Long.BYTES);
  }
}
