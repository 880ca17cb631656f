package io.orbitkv.core;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;

/**
 * Clears on their way to the disk, one after the other. One that can not be written is tried again
 * until it is: a restart must not bring back what was cleared.
 */
final class SsdClears {
  /** Most that wait. */
  static final int MAX_WAITING = 64;

  private static final long RETRY_NS = 1_000_000_000L;

  /** Blocks of a namespace, or of all for null, in segments older than a generation are void. */
  private record Clear(MemorySegment namespace, long before) {}

  private final SsdPort port;
  private final SsdSegments segments;
  private final ArrayDeque<Clear> waiting = new ArrayDeque<>();
  private boolean inProgress;
  private long retryAtNs;

  SsdClears(SsdPort port, SsdSegments segments) {
    this.port = port;
    this.segments = segments;
  }

  /** Adds a clear of everything that was written so far. */
  void add(MemorySegment namespace) {
    waiting.add(new Clear(namespace, segments.nextGeneration()));
    if (waiting.size() == 1) {
      begin();
    }
  }

  private void begin() {
    inProgress = true;
    Clear next = waiting.element();
    port.writeClear(
        SsdRequest.of(SsdRequest.CLEAR, 0),
        next.namespace,
        next.before,
        segments.oldestGeneration());
  }

  /** The one in progress is written, or could not be. */
  void completed(int result, long nowNs) {
    inProgress = false;
    if (result != SsdPort.OK) {
      retryAtNs = nowNs + RETRY_NS;
      return;
    }
    waiting.remove();
    if (!waiting.isEmpty()) {
      begin();
    }
  }

  /** Lets time pass. */
  void tick(long nowNs) {
    if (!inProgress && !waiting.isEmpty() && nowNs - retryAtNs >= 0) {
      begin();
    }
  }

  /** Clears that a restart would not know of. */
  int waiting() {
    return waiting.size();
  }
}
