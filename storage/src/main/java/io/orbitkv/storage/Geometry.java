package io.orbitkv.storage;

import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdPort;

/**
 * How a file is divided.
 *
 * <pre>
 * offset           bytes   part
 *      0            4096   superblock
 *   4096            4096   superblock, second copy
 *  65536           32768   clear log
 *  98304           32768   clear log, second copy
 *   1 MiB          1 MiB   scratch, for the test at the start
 *   2 MiB   n·segmentBytes segments
 * </pre>
 *
 * A segment begins with {@link #tableBytes} of table.
 *
 * @param segmentBytes bytes of a segment, a power of two
 * @param segments number of segments
 */
record Geometry(int segmentBytes, int segments) {
  static final int SECOND_SUPERBLOCK = 4096;
  static final int CLEAR_LOG = 1 << 16;
  static final int SECOND_CLEAR_LOG = CLEAR_LOG + ClearLog.BYTES;
  static final int SCRATCH = 1 << 20;
  static final int SCRATCH_BYTES = 1 << 20;
  static final int FIRST_SEGMENT = 2 << 20;

  private static final int SHARE = 64;
  private static final int MIN_SEGMENT = 4 << 20;
  private static final int MAX_SEGMENT = SsdConfig.MAX_PAGES * SsdPort.PAGE_BYTES;
  private static final int MIN_SEGMENTS = 4;

  /** Least capacity of a file. */
  static final long MIN_CAPACITY = FIRST_SEGMENT + (long) MIN_SEGMENTS * MIN_SEGMENT;

  /**
   * Segments of a sixty-fourth of the file, as a power of two from 4 to 256 MiB, as many as fit.
   *
   * @throws StorageException when not even four fit
   */
  static Geometry of(long capacityBytes) {
    if (capacityBytes < MIN_CAPACITY) {
      throw new StorageException(
          "SSD capacity bytes=" + capacityBytes + ": the least of a path is bytes=" + MIN_CAPACITY);
    }
    long share = Long.highestOneBit(capacityBytes / SHARE);
    int segment = Math.clamp(share, MIN_SEGMENT, MAX_SEGMENT);
    long segments = (capacityBytes - FIRST_SEGMENT) / segment;
    if (segments > SsdConfig.MAX_SEGMENTS) {
      throw new StorageException(
          "SSD capacity bytes="
              + capacityBytes
              + " needs segments="
              + segments
              + ", limit="
              + SsdConfig.MAX_SEGMENTS
              + ": the most of a path is bytes="
              + (FIRST_SEGMENT + (long) SsdConfig.MAX_SEGMENTS * MAX_SEGMENT));
    }
    return new Geometry(segment, (int) segments);
  }

  /** Bytes of the table: room for an entry for each page. */
  int tableBytes() {
    int pages = segmentBytes / SsdPort.PAGE_BYTES;
    return roundUp(SegmentTable.ENTRIES_AT + pages * SegmentTable.ENTRY_BYTES);
  }

  long fileBytes() {
    return FIRST_SEGMENT + (long) segments * segmentBytes;
  }

  long segmentAt(int segment) {
    return FIRST_SEGMENT + (long) segment * segmentBytes;
  }

  /** The next multiple of a page. */
  static int roundUp(int bytes) {
    return (bytes + SsdPort.PAGE_BYTES - 1) & -SsdPort.PAGE_BYTES;
  }
}
