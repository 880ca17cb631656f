package io.orbitkv.core;

import java.lang.foreign.MemorySegment;

/** Gives the core zeroed memory for its tables. Pieces live as long as the core. */
@FunctionalInterface
public interface MetadataMemory {
  /** Memory of so many bytes, zeroed, aligned to at least 64 bytes. */
  MemorySegment allocate(long byteSize);
}
