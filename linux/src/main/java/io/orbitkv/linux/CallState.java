package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;

/**
 * What a native call needs beside its arguments: memory for the error number and for a few poll
 * entries. Each thread has its own, made at its first call, so that later calls allocate nothing.
 * The collector frees the memory with the thread.
 *
 * <p>An error number is read from here, never by a second call, which could change it.
 */
final class CallState {
  private static final long ERRNO_OFFSET =
      Linker.Option.captureStateLayout().byteOffset(MemoryLayout.PathElement.groupElement("errno"));
  private static final ThreadLocal<CallState> CURRENT = ThreadLocal.withInitial(CallState::new);

  private final MemorySegment captured;
  private final MemorySegment pollFds;

  private CallState() {
    var arena = Arena.ofAuto();
    captured = arena.allocate(Linker.Option.captureStateLayout());
    pollFds = arena.allocate((long) Poll.MAX_FDS * Poll.POLLFD_BYTES, 8);
  }

  /** Segment that receives the error number of the current thread's next call. */
  static MemorySegment captured() {
    return CURRENT.get().captured;
  }

  /** The current thread's {@link Poll#MAX_FDS} poll entries. */
  static MemorySegment pollFds() {
    return CURRENT.get().pollFds;
  }

  /** Error number of the current thread's last failed call. */
  static int errno() {
    return captured().get(JAVA_INT, ERRNO_OFFSET);
  }
}
