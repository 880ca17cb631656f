package io.orbitkv.manager;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.linux.Fd;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** What a hostile engine does with descriptors that it was given. */
final class Hostile {
  private static final int F_SETFL = 4;
  private static final MethodHandle FCNTL =
      bind(
          "fcntl",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
          Linker.Option.firstVariadicArg(2));
  private static final MethodHandle WRITE =
      bind("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));

  private Hostile() {}

  @SuppressWarnings("restricted")
  private static MethodHandle bind(String name, FunctionDescriptor type, Linker.Option... options) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), type, options);
  }

  /** Fills an eventfd and lets the next write to it wait for ever. */
  static void fillAndMakeBlocking(Fd eventFd) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment most = arena.allocateFrom(JAVA_LONG, -2L);
      assertThat((long) WRITE.invokeExact(eventFd.value(), most, 8L)).isEqualTo(8);
      assertThat((int) FCNTL.invokeExact(eventFd.value(), F_SETFL, 0)).isZero();
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }
}
