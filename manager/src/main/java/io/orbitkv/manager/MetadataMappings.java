package io.orbitkv.manager;

import io.orbitkv.core.MetadataMemory;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Mapping;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Memory of the core's tables, in huge pages where the kernel has them. Thread-safe. */
final class MetadataMappings implements MetadataMemory, AutoCloseable {
  private static final long HUGE_PAGE_BYTES = 2L << 20;

  private final List<Mapping> mappings = new ArrayList<>();

  @Override
  public synchronized MemorySegment allocate(long byteSize) {
    Mapping mapping = map(byteSize);
    mappings.add(mapping);
    return mapping.segment();
  }

  private static Mapping map(long byteSize) {
    if (byteSize >= HUGE_PAGE_BYTES) {
      try {
        return Mapping.anonymous(byteSize, true);
      } catch (LinuxException e) { // a kernel without transparent huge pages: the advice is moot
        return Mapping.anonymous(byteSize, false);
      }
    }
    return Mapping.anonymous(byteSize, false);
  }

  /** Idempotent; after the core's last use. */
  @Override
  public synchronized void close() {
    mappings.forEach(Mapping::close);
    mappings.clear();
  }
}
