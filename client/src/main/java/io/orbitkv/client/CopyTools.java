package io.orbitkv.client;

import io.orbitkv.device.ChecksumView;
import io.orbitkv.device.HostCopier;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentLinkedQueue;

/** What one running copy needs for itself; made once and used again, by one operation at a time. */
final class CopyTools {
  final HostCopier copier = new HostCopier();

  /** View of each arena. */
  final ChecksumView[] views;

  private CopyTools(MemorySegment[] arenas) {
    views = new ChecksumView[arenas.length];
    for (int i = 0; i < arenas.length; i++) {
      views[i] = ChecksumView.of(arenas[i]);
    }
  }

  /** Tools that wait for their next use. Thread-safe. */
  static final class Pool {
    private final MemorySegment[] arenas;
    private final ConcurrentLinkedQueue<CopyTools> idle = new ConcurrentLinkedQueue<>();

    Pool(MemorySegment[] arenas) {
      this.arenas = arenas.clone();
    }

    CopyTools take() {
      CopyTools tools = idle.poll();
      return tools == null ? new CopyTools(arenas) : tools;
    }

    void giveBack(CopyTools tools) {
      idle.add(tools);
    }
  }
}
