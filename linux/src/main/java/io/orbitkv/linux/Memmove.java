package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * memmove(3) of libc, which chooses its instructions by processor and size. Thread-safe.
 *
 * @see <a href="https://man7.org/linux/man-pages/man3/memmove.3.html">memmove(3)</a>
 */
public final class Memmove {
  private static final MethodHandle MEMMOVE = bind();

  private Memmove() {}

  @SuppressWarnings("restricted")
  private static MethodHandle bind() {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(
        linker.defaultLookup().findOrThrow("memmove"),
        FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG));
  }

  /**
   * Copies bytes between native segments, which stay alive meanwhile.
   *
   * @param length bytes; the ranges may overlap
   * @throws IndexOutOfBoundsException when a range leaves its segment; nothing is copied then
   * @throws IllegalArgumentException when the destination is read-only
   */
  public static void copy(
      MemorySegment src, long srcOffset, MemorySegment dst, long dstOffset, long length) {
    if (dst.isReadOnly()) {
      throw new IllegalArgumentException("destination is read-only: byteSize=" + dst.byteSize());
    }
    try {
      var _ =
          (long)
              MEMMOVE.invokeExact(
                  dst.asSlice(dstOffset, length), src.asSlice(srcOffset, length), length);
    } catch (Throwable t) {
      throw Libc.broken(t);
    }
  }
}
