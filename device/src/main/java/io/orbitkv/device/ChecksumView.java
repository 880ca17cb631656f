package io.orbitkv.device;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.zip.CRC32C;

/**
 * A segment as {@link CRC32C} can read it. Made once per segment, so that summing allocates
 * nothing; it belongs to one thread, the memory to all. Lives as long as the segment does:
 * afterwards summing throws {@link IllegalStateException}.
 *
 * <p>A {@link ByteBuffer} ends at 2 GiB, so the segment is covered by windows of 1 GiB.
 */
public final class ChecksumView {
  static final int WINDOW_SHIFT = 30;

  private static final long WINDOW_BYTES = 1L << WINDOW_SHIFT;

  private final MemorySegment segment;
  private final ByteBuffer[] windows;

  private ChecksumView(MemorySegment segment, ByteBuffer[] windows) {
    this.segment = segment;
    this.windows = windows;
  }

  /**
   * View of a whole segment.
   *
   * @param segment off the heap; may be read-only
   * @throws IllegalArgumentException for a segment on the heap
   */
  public static ChecksumView of(MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException("segment is on the heap: byteSize=" + segment.byteSize());
    }
    long byteSize = segment.byteSize();
    var windows = new ByteBuffer[Math.toIntExact((byteSize + WINDOW_BYTES - 1) >> WINDOW_SHIFT)];
    for (int i = 0; i < windows.length; i++) {
      long start = (long) i << WINDOW_SHIFT;
      windows[i] = segment.asSlice(start, Math.min(WINDOW_BYTES, byteSize - start)).asByteBuffer();
    }
    return new ChecksumView(segment, windows);
  }

  /** The segment that is viewed. */
  public MemorySegment segment() {
    return segment;
  }

  /** Adds a range to a sum. */
  void addTo(CRC32C sum, long offset, long length) {
    Objects.checkFromIndexSize(offset, length, segment.byteSize());
    long end = offset + length;
    long at = offset;
    while (at < end) {
      int start = (int) (at & (WINDOW_BYTES - 1));
      int count = (int) Math.min(WINDOW_BYTES - start, end - at);
      var window = windows[(int) (at >> WINDOW_SHIFT)];
      sum.update(window.limit(start + count).position(start));
      at += count;
    }
  }
}
