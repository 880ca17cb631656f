package io.orbitkv.client;

import io.orbitkv.channel.Protocol;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;

/**
 * Immutable batch of block hashes of one length, in the order of the prefix. Slices share storage.
 * Bytes: hash i at {@code i * hashBytes}, contiguous.
 */
public final class BlockHashes {
  private final MemorySegment bytes;
  private final int hashBytes;
  private final int size;

  private BlockHashes(MemorySegment bytes, int hashBytes) {
    this.bytes = bytes;
    this.hashBytes = hashBytes;
    this.size = Math.toIntExact(bytes.byteSize() / hashBytes);
  }

  /**
   * Copies hashes that lie one behind the other.
   *
   * @throws IllegalArgumentException naming length and rule when a hash is not 16 to 32 bytes or
   *     the array is ragged
   */
  public static BlockHashes of(byte[] packed, int hashBytes) {
    if (hashBytes < Protocol.MIN_HASH_BYTES || hashBytes > Protocol.MAX_HASH_BYTES) {
      throw new IllegalArgumentException(
          "hash bytes="
              + hashBytes
              + ", allowed="
              + Protocol.MIN_HASH_BYTES
              + ".."
              + Protocol.MAX_HASH_BYTES);
    }
    if (packed.length % hashBytes != 0) {
      throw new IllegalArgumentException(
          "bytes=" + packed.length + " are no multiple of hash bytes=" + hashBytes);
    }
    MemorySegment bytes =
        Arena.ofAuto().allocate(Math.max(1, packed.length), 8).asSlice(0, packed.length);
    MemorySegment.copy(packed, 0, bytes, ValueLayout.JAVA_BYTE, 0, packed.length);
    return new BlockHashes(bytes.asReadOnly(), hashBytes);
  }

  /** Copies single hashes, all of one length. */
  public static BlockHashes of(List<byte[]> hashes) {
    if (hashes.isEmpty()) {
      throw new IllegalArgumentException("hashes=0, at least one is needed");
    }
    int hashBytes = hashes.getFirst().length;
    byte[] packed = new byte[Math.multiplyExact(hashBytes, hashes.size())];
    for (int i = 0; i < hashes.size(); i++) {
      byte[] hash = hashes.get(i);
      if (hash.length != hashBytes) {
        throw new IllegalArgumentException(
            "bytes of hash " + i + "=" + hash.length + ", the first has=" + hashBytes);
      }
      System.arraycopy(hash, 0, packed, i * hashBytes, hashBytes);
    }
    return of(packed, hashBytes);
  }

  /** Number of hashes. */
  public int size() {
    return size;
  }

  /** Bytes of each hash. */
  public int hashBytes() {
    return hashBytes;
  }

  /** The hashes from {@code from} to {@code to} less one, without a copy. */
  public BlockHashes slice(int from, int to) {
    return new BlockHashes(
        bytes.asSlice((long) from * hashBytes, (long) (to - from) * hashBytes), hashBytes);
  }

  /** One hash, copied. */
  public byte[] get(int index) {
    return bytes.asSlice((long) index * hashBytes, hashBytes).toArray(ValueLayout.JAVA_BYTE);
  }

  /** All hashes, read-only. */
  MemorySegment bytes() {
    return bytes;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof BlockHashes that
        && hashBytes == that.hashBytes
        && bytes.byteSize() == that.bytes.byteSize()
        && bytes.mismatch(that.bytes) == -1;
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes.toArray(ValueLayout.JAVA_BYTE));
  }
}
