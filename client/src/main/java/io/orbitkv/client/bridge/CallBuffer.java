package io.orbitkv.client.bridge;

import io.orbitkv.channel.Status;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.OrbitKvException;
import java.nio.BufferOverflowException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Reads the arguments of a call one after the other, or writes its answer, at the start of the
 * caller's buffer. Numbers are 8 bytes, little-endian, not aligned.
 */
final class CallBuffer {
  private final ByteBuffer bytes;

  CallBuffer(ByteBuffer bytes) {
    this.bytes = bytes.duplicate().clear().order(ByteOrder.LITTLE_ENDIAN);
  }

  long number() {
    try {
      return bytes.getLong();
    } catch (BufferUnderflowException e) {
      throw tooShort(e);
    }
  }

  /** A number within bounds, both included. */
  int number(String what, long low, long high) {
    long value = number();
    if (value < low || value > high) {
      throw new OrbitKvException(
          Status.INVALID, what + "=" + value + ", allowed=" + low + ".." + high);
    }
    return (int) value;
  }

  /** A count of things of which each takes at least {@code bytesEach} more bytes of the buffer. */
  int count(String what, int bytesEach) {
    return number(what, 0, bytes.remaining() / bytesEach);
  }

  byte[] bytes(int length) {
    byte[] copy = new byte[length];
    try {
      bytes.get(copy);
    } catch (BufferUnderflowException e) {
      throw tooShort(e);
    }
    return copy;
  }

  BlockHashes hashes(int count, int hashBytes) {
    return BlockHashes.of(bytes(Math.multiplyExact(count, hashBytes)), hashBytes);
  }

  int[] pages(int count) {
    int[] pages = new int[count];
    for (int i = 0; i < count; i++) {
      pages[i] = number("page", 0, Integer.MAX_VALUE);
    }
    return pages;
  }

  CallBuffer put(long value) {
    try {
      bytes.putLong(value);
    } catch (BufferOverflowException e) {
      throw tooShort(e);
    }
    return this;
  }

  /** A text as its length and its UTF-8, cut where the buffer ends. */
  void put(String text) {
    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
    int length = Math.min(utf8.length, Math.max(0, bytes.remaining() - Long.BYTES));
    put(length);
    bytes.put(utf8, 0, length);
  }

  private OrbitKvException tooShort(Exception cause) {
    return new OrbitKvException(
        Status.INVALID, "buffer of the call: bytes=" + bytes.capacity() + " are too few", cause);
  }
}
