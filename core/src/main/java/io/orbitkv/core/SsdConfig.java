package io.orbitkv.core;

/**
 * Configuration of the SSD tier.
 *
 * @param pathOfSegment index of the file of each segment
 * @param paths number of files
 * @param firstPage first page of a segment that is not its table's
 * @param pages pages of a segment, those of its table included
 * @param depth most reads and writes in progress in one file
 * @param policy which blocks are written
 * @param dailyWriteBytes most bytes written in a day; 0 for no limit
 * @param stallNs age of a read or write from which its file counts as stalled
 * @param readFloor bytes a second of reads below which a file is by-passed; 0 for none
 * @param startSpeeds bytes a second of reads of each file, as measured at the start
 */
@SuppressWarnings("ArrayRecordComponent") // read once, by the tier
public record SsdConfig(
    int[] pathOfSegment,
    int paths,
    int firstPage,
    int pages,
    int depth,
    WritePolicy policy,
    long dailyWriteBytes,
    long stallNs,
    long readFloor,
    long[] startSpeeds) {
  /** Most segments: a place is 16 bits of segment and 16 bits of page. */
  public static final int MAX_SEGMENTS = 1 << 16;

  /** Most pages of a segment. */
  public static final int MAX_PAGES = 1 << 16;

  /** Age at which a request is taken for stuck when nothing else is configured. */
  public static final long DEFAULT_STALL_NS = 2_000_000_000L;

  /** Which blocks are written. */
  public enum WritePolicy {
    /** Each block, once it is sealed. */
    ALL,
    /** A block that is used again after its publish. */
    REUSE
  }

  /** Without a floor of speed. */
  public SsdConfig(
      int[] pathOfSegment,
      int paths,
      int firstPage,
      int pages,
      int depth,
      WritePolicy policy,
      long dailyWriteBytes,
      long stallNs) {
    this(
        pathOfSegment,
        paths,
        firstPage,
        pages,
        depth,
        policy,
        dailyWriteBytes,
        stallNs,
        0,
        new long[paths]);
  }

  /** Checks the numbers. */
  public SsdConfig {
    if (pathOfSegment.length > MAX_SEGMENTS || pages > MAX_PAGES || firstPage >= pages) {
      throw new IllegalArgumentException(
          "segments="
              + pathOfSegment.length
              + ", pages="
              + pages
              + ", first page="
              + firstPage
              + "; the limits are "
              + MAX_SEGMENTS
              + " and "
              + MAX_PAGES);
    }
  }
}
