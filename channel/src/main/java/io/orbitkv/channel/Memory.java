package io.orbitkv.channel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Little-endian access to off-heap records by byte offset, in the access mode that the name states.
 * Plain access has no alignment demand; the ordered modes need naturally aligned offsets.
 */
public final class Memory {
  private static final ValueLayout.OfShort SHORT_LE =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT_LE =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG_LE =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  private static final VarHandle LONG =
      ValueLayout.JAVA_LONG
          .withOrder(ByteOrder.LITTLE_ENDIAN)
          .varHandle()
          .withInvokeExactBehavior();

  private Memory() {}

  /** Plain read of one byte. */
  public static byte getByte(MemorySegment segment, long offset) {
    return segment.get(JAVA_BYTE, offset);
  }

  /** Plain write of one byte. */
  public static void putByte(MemorySegment segment, long offset, byte value) {
    segment.set(JAVA_BYTE, offset, value);
  }

  /** Plain read of two bytes. */
  public static short getShort(MemorySegment segment, long offset) {
    return segment.get(SHORT_LE, offset);
  }

  /** Plain write of two bytes. */
  public static void putShort(MemorySegment segment, long offset, short value) {
    segment.set(SHORT_LE, offset, value);
  }

  /** Plain read of four bytes. */
  public static int getInt(MemorySegment segment, long offset) {
    return segment.get(INT_LE, offset);
  }

  /** Plain write of four bytes. */
  public static void putInt(MemorySegment segment, long offset, int value) {
    segment.set(INT_LE, offset, value);
  }

  /** Plain read of eight bytes. */
  public static long getLong(MemorySegment segment, long offset) {
    return segment.get(LONG_LE, offset);
  }

  /** Plain write of eight bytes. */
  public static void putLong(MemorySegment segment, long offset, long value) {
    segment.set(LONG_LE, offset, value);
  }

  /** Observes four bytes. */
  public static int getIntAcquire(MemorySegment segment, long offset) {
    return (int) INT.getAcquire(segment, offset);
  }

  /** Publishes four bytes. */
  public static void putIntRelease(MemorySegment segment, long offset, int value) {
    INT.setRelease(segment, offset, value);
  }

  /** Sequentially consistent read of four bytes. */
  public static int getIntVolatile(MemorySegment segment, long offset) {
    return (int) INT.getVolatile(segment, offset);
  }

  /**
   * Sequentially consistent write of four bytes; orders a sleep announcement before the re-check
   * after it.
   */
  public static void putIntVolatile(MemorySegment segment, long offset, int value) {
    INT.setVolatile(segment, offset, value);
  }

  /** Observes eight bytes. */
  public static long getLongAcquire(MemorySegment segment, long offset) {
    return (long) LONG.getAcquire(segment, offset);
  }

  /** Publishes eight bytes. */
  public static void putLongRelease(MemorySegment segment, long offset, long value) {
    LONG.setRelease(segment, offset, value);
  }

  /** Sequentially consistent read of eight bytes. */
  public static long getLongVolatile(MemorySegment segment, long offset) {
    return (long) LONG.getVolatile(segment, offset);
  }

  /** Claims eight bytes: true when they held {@code expected} and hold {@code next} now. */
  public static boolean compareAndSetLong(
      MemorySegment segment, long offset, long expected, long next) {
    return LONG.compareAndSet(segment, offset, expected, next);
  }

  /** Sets bits and returns the value before. */
  public static long getAndOrLong(MemorySegment segment, long offset, long bits) {
    return (long) LONG.getAndBitwiseOr(segment, offset, bits);
  }

  /** Replaces eight bytes and returns the value before. */
  public static long getAndSetLong(MemorySegment segment, long offset, long value) {
    return (long) LONG.getAndSet(segment, offset, value);
  }

  /** Adds and returns the value before. */
  public static long getAndAddLong(MemorySegment segment, long offset, long delta) {
    return (long) LONG.getAndAdd(segment, offset, delta);
  }
}
