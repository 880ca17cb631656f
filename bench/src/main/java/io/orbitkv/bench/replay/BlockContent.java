package io.orbitkv.bench.replay;

import io.orbitkv.bench.Mix;
import io.orbitkv.client.BlockHashes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Hashes and bytes of the blocks of a trace: both follow from the seed and the block's id alone, so
 * that whoever restores a block knows what it must hold. Belongs to one thread.
 */
final class BlockContent {
  /** What pages hold before a restore, so that a block that was not written is seen. */
  static final byte GUARD = 0x5a;

  private static final ValueLayout.OfLong WORD =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final long seed;
  private final MemorySegment expected;

  BlockContent(long seed, int blockBytes) {
    this.seed = seed;
    this.expected = MemorySegment.ofArray(new byte[blockBytes]);
  }

  /** Hashes of the blocks, in their order. */
  BlockHashes hashes(long[] ids) {
    return Mix.hashes(seed, ids);
  }

  /** Writes the bytes of a block. */
  void fill(long id, MemorySegment block) {
    long state = Mix.mix(~seed ^ Mix.mix(id + Mix.GOLDEN));
    long words = block.byteSize() / Long.BYTES;
    for (long i = 0; i < words; i++) {
      block.set(WORD, i * Long.BYTES, Mix.mix(state + i * Mix.GOLDEN));
    }
    for (long i = words * Long.BYTES; i < block.byteSize(); i++) {
      block.set(ValueLayout.JAVA_BYTE, i, (byte) (Mix.mix(state + i) >>> 24));
    }
  }

  /** Number of bytes that are not the block's. */
  long wrongBytes(long id, MemorySegment block) {
    fill(id, expected);
    if (block.mismatch(expected) == -1) {
      return 0;
    }
    long wrong = 0;
    for (long i = 0; i < block.byteSize(); i++) {
      if (block.get(ValueLayout.JAVA_BYTE, i) != expected.get(ValueLayout.JAVA_BYTE, i)) {
        wrong++;
      }
    }
    return wrong;
  }
}
