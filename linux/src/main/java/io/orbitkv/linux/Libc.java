package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Functions of libc, called in one of four shapes. The JVM makes a stub for each shape that a
 * process uses, about 10 ms of a processor's time, and a Manager should be ready soon; functions of
 * one shape share it.
 *
 * <p>So a shape may have more parameters than its function, and 64 bits where that takes an int: on
 * x86-64 and AArch64 Linux each of the first six travels in a register of its own, for a variadic
 * function too, and the function looks at what it knows. The upper half of an int result is
 * undefined: callers cast it away. Pointers are segments, so that the JVM checks that they live;
 * the few that are numbers point to memory of the caller, which it keeps.
 *
 * <p>After −1 the reason is {@link CallState#errno()}. Handles are fields of records since the JVM
 * takes those for constants, as it needs to compile a call in place.
 *
 * @see <a href="https://gitlab.com/x86-psABIs/x86-64-ABI">System V ABI, section 3.2.3</a>
 * @see <a href="https://github.com/ARM-software/abi-aa">AAPCS64, section 6.8</a>
 */
final class Libc {
  private static final Linker LINKER = Linker.nativeLinker();
  private static final Linker.Option WITH_ERRNO = Linker.Option.captureCallState("errno");

  private Libc() {}

  /** A function of up to six numbers. */
  record Numbers(MethodHandle handle) {
    private static final FunctionDescriptor SHAPE =
        FunctionDescriptor.of(
            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    static Numbers of(String name) {
      return new Numbers(bind(name, SHAPE));
    }

    long call() {
      return call(0, 0, 0);
    }

    long call(long a) {
      return call(a, 0, 0);
    }

    long call(long a, long b) {
      return call(a, b, 0);
    }

    long call(long a, long b, long c) {
      return call(a, b, c, 0, 0, 0);
    }

    long call(long a, long b, long c, long d, long e, long f) {
      try {
        return (long) handle.invokeExact(CallState.captured(), a, b, c, d, e, f);
      } catch (Throwable t) {
        throw broken(t);
      }
    }
  }

  /** A function of a pointer and up to two numbers. */
  record PointerFirst(MethodHandle handle) {
    private static final FunctionDescriptor SHAPE =
        FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG);

    static PointerFirst of(String name) {
      return new PointerFirst(bind(name, SHAPE));
    }

    long call(MemorySegment pointer, long b, long c) {
      try {
        return (long) handle.invokeExact(CallState.captured(), pointer, b, c);
      } catch (Throwable t) {
        throw broken(t);
      }
    }
  }

  /** A function of up to five arguments, the second of them a pointer. */
  record PointerSecond(MethodHandle handle) {
    private static final FunctionDescriptor SHAPE =
        FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    static PointerSecond of(String name) {
      return new PointerSecond(bind(name, SHAPE));
    }

    long call(long a, MemorySegment pointer, long c) {
      return call(a, pointer, c, 0, 0);
    }

    long call(long a, MemorySegment pointer, long c, long d, long e) {
      try {
        return (long) handle.invokeExact(CallState.captured(), a, pointer, c, d, e);
      } catch (Throwable t) {
        throw broken(t);
      }
    }
  }

  /** A function of up to five arguments, the fourth of them a pointer. */
  record PointerFourth(MethodHandle handle) {
    private static final FunctionDescriptor SHAPE =
        FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG);

    static PointerFourth of(String name) {
      return new PointerFourth(bind(name, SHAPE));
    }

    long call(long a, long b, long c, MemorySegment pointer, long e) {
      try {
        return (long) handle.invokeExact(CallState.captured(), a, b, c, pointer, e);
      } catch (Throwable t) {
        throw broken(t);
      }
    }
  }

  /** Throws {@link UnsupportedOperationException} when libc lacks the function. */
  @SuppressWarnings("restricted")
  private static MethodHandle bind(String name, FunctionDescriptor shape) {
    var symbol =
        LINKER
            .defaultLookup()
            .find(name)
            .orElseThrow(() -> new UnsupportedOperationException("libc lacks function=" + name));
    return LINKER.downcallHandle(symbol, shape, WITH_ERRNO);
  }

  /**
   * What to throw when a handle itself threw: unchecked throwables as they are, as of a segment
   * that is no longer alive.
   */
  static RuntimeException broken(Throwable thrown) {
    if (thrown instanceof Error error) {
      throw error;
    }
    return thrown instanceof RuntimeException unchecked
        ? unchecked
        : new IllegalStateException("native call broke", thrown);
  }
}
