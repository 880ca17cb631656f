package io.orbitkv.client;

import java.lang.foreign.MemorySegment;

/** Writes the data of a command into the byte ring. */
interface SpanWriter {
  /** Bytes that will be written. */
  int spanBytes();

  /** Writes them. */
  void writeTo(MemorySegment into, long at);
}
