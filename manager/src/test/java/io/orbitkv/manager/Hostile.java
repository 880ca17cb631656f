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
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

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

  private static final MethodHandle SYSCALL =
      bind(
          "syscall",
          FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT),
          Linker.Option.firstVariadicArg(1));
  private static final long SYS_SETRESUID =
      System.getProperty("os.arch").equals("aarch64") ? 147 : 117;

  private Hostile() {}

  @SuppressWarnings("restricted")
  private static MethodHandle bind(String name, FunctionDescriptor type, Linker.Option... options) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), type, options);
  }

  /**
   * Runs something as another user. Only this one thread changes its user, for good: it is a fresh
   * one, and the C library's wrapper, which changes all threads, is not used.
   *
   * @see <a href="https://man7.org/linux/man-pages/man2/setresuid.2.html">setresuid(2), C
   *     library/kernel differences</a>
   */
  static <T> T asUser(int uid, Callable<T> action) throws Exception {
    CompletableFuture<T> result = new CompletableFuture<>();
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              try {
                assertThat((long) SYSCALL.invokeExact(SYS_SETRESUID, uid, uid, uid)).isZero();
                result.complete(action.call());
              } catch (Throwable t) {
                result.completeExceptionally(t);
              }
            });
    try {
      return result.get(60, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    } finally {
      thread.join(60_000);
    }
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
