package io.orbitkv.bench.simulator;

import io.orbitkv.linux.Mapping;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Zeroed memory of one run, given back as a whole. */
final class Regions implements AutoCloseable {
  private static final long CHUNK_BYTES = 256L << 20;
  private static final long PAGE_BYTES = 4096;

  private final List<Mapping> chunks = new ArrayList<>();
  private long used = CHUNK_BYTES;

  /** Fresh memory, all zero, that begins at a page. */
  MemorySegment take(long bytes) {
    long whole = (bytes + PAGE_BYTES - 1) & -PAGE_BYTES;
    if (used + whole > CHUNK_BYTES) {
      chunks.add(Mapping.anonymous(CHUNK_BYTES, false));
      used = 0;
    }
    MemorySegment taken = chunks.getLast().segment().asSlice(used, bytes);
    used += whole;
    return taken;
  }

  @Override
  public void close() {
    chunks.forEach(Mapping::close);
  }
}
