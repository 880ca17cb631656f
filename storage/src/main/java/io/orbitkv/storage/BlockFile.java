package io.orbitkv.storage;

import io.orbitkv.linux.DirectFile;
import java.lang.foreign.MemorySegment;

/** The bytes of one file; the place where tests put faults in. Thread-safe. */
interface BlockFile {
  /** See {@link DirectFile#read}. */
  long read(long offset, MemorySegment into, long length);

  /** See {@link DirectFile#write}. */
  long write(long offset, MemorySegment from, long length);

  /** The file for a backend that passes its descriptor to the kernel; null when there is none. */
  DirectFile direct();

  /** A plain file. */
  static BlockFile of(DirectFile file) {
    return new BlockFile() {
      @Override
      public long read(long offset, MemorySegment into, long length) {
        return file.read(offset, into, length);
      }

      @Override
      public long write(long offset, MemorySegment from, long length) {
        return file.write(offset, from, length);
      }

      @Override
      public DirectFile direct() {
        return file;
      }
    };
  }
}
