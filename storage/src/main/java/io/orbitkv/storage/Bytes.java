package io.orbitkv.storage;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/** Little-endian access to records on disk, and their checksums. */
final class Bytes {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private Bytes() {}

  static int getShort(MemorySegment from, long at) {
    return Short.toUnsignedInt(from.get(SHORT, at));
  }

  static void putShort(MemorySegment into, long at, int value) {
    into.set(SHORT, at, (short) value);
  }

  static int getInt(MemorySegment from, long at) {
    return from.get(INT, at);
  }

  static void putInt(MemorySegment into, long at, int value) {
    into.set(INT, at, value);
  }

  static long getLong(MemorySegment from, long at) {
    return from.get(LONG, at);
  }

  static void putLong(MemorySegment into, long at, long value) {
    into.set(LONG, at, value);
  }

  /** CRC32C of a range. */
  static int crc(MemorySegment from, long at, long length) {
    CRC32C crc = new CRC32C();
    crc.update(from.asSlice(at, length).asByteBuffer());
    return (int) crc.getValue();
  }

  /** True when every byte of a range is zero. */
  static boolean isBlank(MemorySegment from, long at, long length) {
    for (long i = at; i < at + length; i += Long.BYTES) {
      if (getLong(from, i) != 0) {
        return false;
      }
    }
    return true;
  }
}
