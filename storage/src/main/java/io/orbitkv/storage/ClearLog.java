package io.orbitkv.storage;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Namespaces that were cleared: their blocks in older segments are void. Two copies; the valid one
 * with the greater sequence counts, and the other one is written next. All files of a tier have the
 * same sequence: one that lags was not there when something was cleared.
 *
 * <pre>
 * offset  bytes  field
 *      0      8  magic      "OKVCLR\0\0"
 *      8      4  version    of the superblock
 *     12      4  crc32c     of bytes 16 up to the end of the records
 *     16     16  identity   of the file
 *     32      8  sequence
 *     40      4  records
 *     44     20  zero
 *     64  records of 40:
 *            0  32  namespace  digest; zero for every namespace
 *           32   8  before     blocks in segments of a smaller generation are void
 * </pre>
 *
 * Little-endian. Belongs to one thread.
 */
final class ClearLog {
  static final int BYTES = 1 << 15;
  static final long MAGIC = 0x0000_524c_4356_4b4fL; // "OKVCLR"

  private static final int CHECKED_AT = 16;
  private static final int RECORDS_AT = 64;
  private static final int RECORD_BYTES = 40;
  private static final int DIGEST_BYTES = 32;

  /** Most records: more are joined to one for every namespace. */
  static final int MAX_RECORDS = (BYTES - RECORDS_AT) / RECORD_BYTES;

  private static final MemorySegment EVERY = MemorySegment.ofArray(new byte[DIGEST_BYTES]);

  private record Cleared(MemorySegment namespace, long before) {}

  private final List<Cleared> records = new ArrayList<>();
  private long sequence;
  private boolean inSecond;

  /** Notes a clear and forgets what no segment in use can be older than. */
  void add(MemorySegment namespace, long before, long oldest) {
    MemorySegment digest = namespace == null ? EVERY : copy(namespace, 0);
    records.removeIf(record ->
        record.before <= oldest || namespace == null || record.namespace.mismatch(digest) < 0);
    if (records.size() == MAX_RECORDS) {
      records.clear();
      records.add(new Cleared(EVERY, before));
      return;
    }
    records.add(new Cleared(digest, before));
  }

  private static MemorySegment copy(MemorySegment from, long at) {
    return MemorySegment.ofArray(
        from.asSlice(at, DIGEST_BYTES).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE));
  }

  /** True when a block of a segment of that generation is void. */
  boolean isCleared(MemorySegment memory, long namespace, long generation) {
    for (Cleared record : records) {
      boolean meant =
          record.namespace.mismatch(EVERY) < 0
              || MemorySegment.mismatch(
                      record.namespace,
                      0,
                      DIGEST_BYTES,
                      memory,
                      namespace,
                      namespace + DIGEST_BYTES)
                  < 0;
      if (meant && generation < record.before) {
        return true;
      }
    }
    return false;
  }

  /** Generation that a segment must have, at least, to be newer than every clear. */
  long nextGeneration() {
    return records.stream().mapToLong(Cleared::before).max().orElse(0);
  }

  /** Sequence of the copy on disk; 0 for none. */
  long sequence() {
    return sequence;
  }

  /** Writes a version of the log; returns the offset in the file where it belongs. */
  long write(MemorySegment into, Superblock file, long next) {
    into.asSlice(0, BYTES).fill((byte) 0);
    Bytes.putLong(into, 0, MAGIC);
    Bytes.putInt(into, 8, Superblock.VERSION);
    Bytes.putLong(into, 16, file.identityHigh());
    Bytes.putLong(into, 24, file.identityLow());
    Bytes.putLong(into, 32, next);
    Bytes.putInt(into, 40, records.size());
    for (int i = 0; i < records.size(); i++) {
      long at = RECORDS_AT + (long) i * RECORD_BYTES;
      MemorySegment.copy(records.get(i).namespace, 0, into, at, DIGEST_BYTES);
      Bytes.putLong(into, at + DIGEST_BYTES, records.get(i).before);
    }
    Bytes.putInt(into, 12, Bytes.crc(into, CHECKED_AT, checkedBytes(records.size())));
    return inSecond ? Geometry.CLEAR_LOG : Geometry.SECOND_CLEAR_LOG;
  }

  /** What {@link #write} gave is on disk. */
  void written(long next) {
    sequence = next;
    inSecond = !inSecond;
  }

  private static long checkedBytes(int records) {
    return RECORDS_AT - CHECKED_AT + (long) records * RECORD_BYTES;
  }

  /** Reads the newer valid copy, if one is. */
  void read(MemorySegment first, MemorySegment second, Superblock file) {
    long one = sequenceOf(first, file);
    long two = sequenceOf(second, file);
    inSecond = two > one;
    if (one > 0 || two > 0) {
      readRecords(inSecond ? second : first);
    }
  }

  private static long sequenceOf(MemorySegment copy, Superblock file) {
    int records = Bytes.getInt(copy, 40);
    boolean valid =
        Bytes.getLong(copy, 0) == MAGIC
            && Bytes.getInt(copy, 8) == Superblock.VERSION
            && Bytes.getLong(copy, 16) == file.identityHigh()
            && Bytes.getLong(copy, 24) == file.identityLow()
            && records >= 0
            && records <= MAX_RECORDS
            && Bytes.getInt(copy, 12) == Bytes.crc(copy, CHECKED_AT, checkedBytes(records));
    return valid ? Bytes.getLong(copy, 32) : 0;
  }

  private void readRecords(MemorySegment copy) {
    sequence = Bytes.getLong(copy, 32);
    records.clear();
    for (int i = 0; i < Bytes.getInt(copy, 40); i++) {
      long at = RECORDS_AT + (long) i * RECORD_BYTES;
      records.add(new Cleared(copy(copy, at), Bytes.getLong(copy, at + DIGEST_BYTES)));
    }
  }
}
