package io.orbitkv.storage;

import io.orbitkv.core.SsdPort;
import java.lang.foreign.MemorySegment;

/**
 * What is in a segment. Entries are only ever added; the header tells how many count, so the table
 * may be written while later entries are being added.
 *
 * <pre>
 * offset  bytes  field
 *      0      8  magic          "OKVTABL\0"
 *      8      4  version        of the superblock
 *     12      4  crc32c         of bytes 16 to 127, then of the spaces, then of the entries
 *     16     16  identity       of the file
 *     32      8  generation
 *     40      4  segment        index in the file
 *     44      4  entries
 *     48      4  spaces
 *     52      4  closed         1 when nothing was to be added any more
 *     56      8  lifetimeBytes  written to the tier up to here
 *     64     64  zero
 *    128  spaces of 48, at most 82:
 *            0  32  namespace   digest
 *           32   4  group
 *           36   4  hashBytes
 *           40   4  blockBytes
 *           44   4  zero
 *   4096  entries of 44:
 *            0  32  hash        zero padded
 *           32   4  space       index above
 *           36   4  page        where the block begins in the segment
 *           40   4  crc32c      of the block
 * </pre>
 *
 * Little-endian. Belongs to one thread; a writer of its bytes may read what {@link #seal} covered.
 */
final class SegmentTable {
  static final int ENTRIES_AT = 4096;
  static final int ENTRY_BYTES = SsdPort.TABLE_ENTRY_BYTES;
  static final int SPACE_BYTES = 48;
  static final int SPACES_AT = 128;
  static final int MAX_SPACES = (ENTRIES_AT - SPACES_AT) / SPACE_BYTES;
  static final long MAGIC = 0x004c_4241_5456_4b4fL; // "OKVTABL"

  private static final int CHECKED_AT = 16;

  private final MemorySegment bytes;
  private int entries;
  private int spaces;

  /** A table in memory as long as the longest. */
  SegmentTable(MemorySegment bytes) {
    this.bytes = bytes;
  }

  /** Begins an empty table. */
  void begin(Superblock file, int segment, long generation) {
    bytes.asSlice(0, ENTRIES_AT).fill((byte) 0);
    entries = 0;
    spaces = 0;
    Bytes.putLong(bytes, 0, MAGIC);
    Bytes.putInt(bytes, 8, Superblock.VERSION);
    Bytes.putLong(bytes, 16, file.identityHigh());
    Bytes.putLong(bytes, 24, file.identityLow());
    Bytes.putLong(bytes, 32, generation);
    Bytes.putInt(bytes, 40, segment);
  }

  /** Adds a block; false when there is no room for its namespace and group, or for it. */
  boolean add(
      MemorySegment hashes,
      long hash,
      MemorySegment namespace,
      int group,
      int hashBytes,
      int blockBytes,
      int page,
      int crc) {
    int space = space(namespace, group, hashBytes, blockBytes);
    long at = entryAt(entries);
    if (space < 0 || at + ENTRY_BYTES > bytes.byteSize()) {
      return false;
    }
    MemorySegment.copy(hashes, hash, bytes, at, 32);
    Bytes.putInt(bytes, at + 32, space);
    Bytes.putInt(bytes, at + 36, page);
    Bytes.putInt(bytes, at + 40, crc);
    entries++;
    return true;
  }

  private int space(MemorySegment namespace, int group, int hashBytes, int blockBytes) {
    for (int i = spaces - 1; i >= 0; i--) {
      long at = spaceAt(i);
      if (Bytes.getInt(bytes, at + 32) == group
          && Bytes.getInt(bytes, at + 36) == hashBytes
          && Bytes.getInt(bytes, at + 40) == blockBytes
          && MemorySegment.mismatch(bytes, at, at + 32, namespace, 0, 32) < 0) {
        return i;
      }
    }
    if (spaces == MAX_SPACES) {
      return -1;
    }
    long at = spaceAt(spaces);
    MemorySegment.copy(namespace, 0, bytes, at, 32);
    Bytes.putInt(bytes, at + 32, group);
    Bytes.putInt(bytes, at + 36, hashBytes);
    Bytes.putInt(bytes, at + 40, blockBytes);
    return spaces++;
  }

  /** Makes the header cover all that was added; returns the bytes to write, whole pages. */
  int seal(long lifetimeBytes, boolean close) {
    Bytes.putInt(bytes, 44, entries);
    Bytes.putInt(bytes, 48, spaces);
    Bytes.putInt(bytes, 52, close ? 1 : 0);
    Bytes.putLong(bytes, 56, lifetimeBytes);
    return coveredBytes(bytes);
  }

  /** Stores the checksum of what the header covers. */
  static void stamp(MemorySegment bytes) {
    Bytes.putInt(bytes, 12, checksum(bytes));
  }

  private static int checksum(MemorySegment bytes) {
    java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
    long headEnd = SPACES_AT + (long) SPACE_BYTES * spaces(bytes);
    crc.update(bytes.asSlice(CHECKED_AT, headEnd - CHECKED_AT).asByteBuffer());
    crc.update(bytes.asSlice(ENTRIES_AT, (long) ENTRY_BYTES * entries(bytes)).asByteBuffer());
    return (int) crc.getValue();
  }

  private static int coveredBytes(MemorySegment bytes) {
    return Geometry.roundUp(ENTRIES_AT + entries(bytes) * ENTRY_BYTES);
  }

  MemorySegment bytes() {
    return bytes;
  }

  // ---- reading ----

  /** What the start of a segment can be. */
  enum Kind {
    /** No table. */
    BLANK,
    /** Whole and of this segment. */
    VALID,
    /** Of another file. */
    FOREIGN,
    /** Of another segment of this file. */
    EXCHANGED,
    /** Torn or damaged. */
    DAMAGED
  }

  /**
   * Bytes of a table whose header is at hand, whole pages; −1 when the header is none.
   *
   * @param most bytes of the longest table
   */
  static int tableBytes(MemorySegment header, int most) {
    if (Bytes.getLong(header, 0) != MAGIC || Bytes.getInt(header, 8) != Superblock.VERSION) {
      return -1;
    }
    int entries = entries(header);
    boolean fits =
        entries >= 0
            && entries <= (most - ENTRIES_AT) / ENTRY_BYTES
            && spaces(header) >= 0
            && spaces(header) <= MAX_SPACES;
    return fits ? coveredBytes(header) : -1;
  }

  /** Checks a table that was read whole. */
  static Kind kind(MemorySegment bytes, Superblock file, int segment) {
    if (Bytes.isBlank(bytes, 0, ENTRIES_AT)) {
      return Kind.BLANK;
    }
    int wanted = tableBytes(bytes, file.geometry().tableBytes());
    if (wanted < 0 || wanted > bytes.byteSize() || Bytes.getInt(bytes, 12) != checksum(bytes)) {
      return Kind.DAMAGED;
    }
    if (Bytes.getLong(bytes, 16) != file.identityHigh()
        || Bytes.getLong(bytes, 24) != file.identityLow()) {
      return Kind.FOREIGN;
    }
    if (Bytes.getInt(bytes, 40) != segment) {
      return Kind.EXCHANGED;
    }
    return entriesFit(bytes, file.geometry()) ? Kind.VALID : Kind.DAMAGED;
  }

  private static boolean entriesFit(MemorySegment bytes, Geometry geometry) {
    int spaces = spaces(bytes);
    for (int i = 0; i < spaces; i++) {
      int hashBytes = hashBytes(bytes, i);
      if (hashBytes < 1 || hashBytes > 32 || group(bytes, i) < 0 || group(bytes, i) > 63) {
        return false;
      }
    }
    for (int i = 0; i < entries(bytes); i++) {
      int space = space(bytes, i);
      if (space < 0 || space >= spaces) {
        return false;
      }
      long start = (long) page(bytes, i) * 4096;
      long end = start + blockBytes(bytes, space);
      if (start < geometry.tableBytes() || end <= start || end > geometry.segmentBytes()) {
        return false;
      }
    }
    return true;
  }

  static int entries(MemorySegment bytes) {
    return Bytes.getInt(bytes, 44);
  }

  static int spaces(MemorySegment bytes) {
    return Bytes.getInt(bytes, 48);
  }

  static long generation(MemorySegment bytes) {
    return Bytes.getLong(bytes, 32);
  }

  static long lifetimeBytes(MemorySegment bytes) {
    return Bytes.getLong(bytes, 56);
  }

  static long spaceAt(int space) {
    return SPACES_AT + (long) SPACE_BYTES * space;
  }

  static long entryAt(int entry) {
    return ENTRIES_AT + (long) ENTRY_BYTES * entry;
  }

  static int group(MemorySegment bytes, int space) {
    return Bytes.getInt(bytes, spaceAt(space) + 32);
  }

  static int hashBytes(MemorySegment bytes, int space) {
    return Bytes.getInt(bytes, spaceAt(space) + 36);
  }

  static int blockBytes(MemorySegment bytes, int space) {
    return Bytes.getInt(bytes, spaceAt(space) + 40);
  }

  static int space(MemorySegment bytes, int entry) {
    return Bytes.getInt(bytes, entryAt(entry) + 32);
  }

  static int page(MemorySegment bytes, int entry) {
    return Bytes.getInt(bytes, entryAt(entry) + 36);
  }

  static int crc(MemorySegment bytes, int entry) {
    return Bytes.getInt(bytes, entryAt(entry) + 40);
  }
}
