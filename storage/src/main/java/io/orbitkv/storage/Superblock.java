package io.orbitkv.storage;

import java.lang.foreign.MemorySegment;

/**
 * First page of a file. Two copies, so that one may be damaged.
 *
 * <pre>
 * offset  bytes  field
 *      0      8  magic         "OKVSSD\0\0"
 *      8      4  version
 *     12      4  crc32c        of bytes 16 to 63
 *     16     16  identity      random, of this file
 *     32      8  fileBytes
 *     40      4  segmentBytes
 *     44      4  segments
 *     48      4  tableBytes
 *     52     12  zero
 * </pre>
 *
 * Little-endian.
 *
 * @param identityHigh high half of the identity
 * @param identityLow low half
 * @param geometry how the file is divided
 */
record Superblock(long identityHigh, long identityLow, Geometry geometry) {
  static final int BYTES = 4096;
  static final int VERSION = 1;
  static final long MAGIC = 0x0000_4453_5356_4b4fL; // "OKVSSD"

  private static final int CHECKED_AT = 16;
  private static final int CHECKED_BYTES = 48;

  /** What a first page can be. */
  enum Kind {
    /** All zero: a file that was never finished. */
    BLANK,
    /** Ours. */
    VALID,
    /** Ours, of another version. */
    OTHER_VERSION,
    /** Ours, but damaged. */
    DAMAGED,
    /** Not ours. */
    FOREIGN
  }

  static Kind kind(MemorySegment page) {
    if (Bytes.isBlank(page, 0, BYTES)) {
      return Kind.BLANK;
    }
    if (Bytes.getLong(page, 0) != MAGIC) {
      return Kind.FOREIGN;
    }
    if (version(page) != VERSION) {
      return Kind.OTHER_VERSION;
    }
    return Bytes.getInt(page, 12) == Bytes.crc(page, CHECKED_AT, CHECKED_BYTES)
            && read(page).isPossible(Bytes.getLong(page, 32), Bytes.getInt(page, 48))
        ? Kind.VALID
        : Kind.DAMAGED;
  }

  private boolean isPossible(long fileBytes, int tableBytes) {
    int segment = geometry.segmentBytes();
    return segment >= 4 << 20
        && segment <= 256 << 20
        && Integer.bitCount(segment) == 1
        && geometry.segments() > 0
        && geometry.fileBytes() == fileBytes
        && geometry.tableBytes() == tableBytes;
  }

  static int version(MemorySegment page) {
    return Bytes.getInt(page, 8);
  }

  static Superblock read(MemorySegment page) {
    return new Superblock(
        Bytes.getLong(page, 16),
        Bytes.getLong(page, 24),
        new Geometry(Bytes.getInt(page, 40), Bytes.getInt(page, 44)));
  }

  void write(MemorySegment page) {
    page.asSlice(0, BYTES).fill((byte) 0);
    Bytes.putLong(page, 0, MAGIC);
    Bytes.putInt(page, 8, VERSION);
    Bytes.putLong(page, 16, identityHigh);
    Bytes.putLong(page, 24, identityLow);
    Bytes.putLong(page, 32, geometry.fileBytes());
    Bytes.putInt(page, 40, geometry.segmentBytes());
    Bytes.putInt(page, 44, geometry.segments());
    Bytes.putInt(page, 48, geometry.tableBytes());
    Bytes.putInt(page, 12, Bytes.crc(page, CHECKED_AT, CHECKED_BYTES));
  }
}
