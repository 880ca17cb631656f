package io.orbitkv.bench;

import io.orbitkv.client.BlockHashes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Well mixed numbers from ids, by the finaliser of <a
 * href="https://doi.org/10.1145/2660193.2660195">SplitMix64</a>.
 */
public final class Mix {
  /** Bytes of a block hash. */
  public static final int HASH_BYTES = 32;

  /** Distance between the states of a sequence. */
  public static final long GOLDEN = 0x9e37_79b9_7f4a_7c15L;

  private Mix() {}

  /** A number that depends on every bit of the value. */
  public static long mix(long value) {
    long z = value;
    z = (z ^ (z >>> 30)) * 0xbf58_476d_1ce4_e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d0_49bb_1331_11ebL;
    return z ^ (z >>> 31);
  }

  /** Hashes of blocks, in the order of their ids. */
  public static BlockHashes hashes(long seed, long... ids) {
    ByteBuffer packed = ByteBuffer.allocate(ids.length * HASH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (long id : ids) {
      long state = mix(seed ^ mix(id + GOLDEN));
      for (int i = 0; i < HASH_BYTES / Long.BYTES; i++) {
        packed.putLong(mix(state + i * GOLDEN));
      }
    }
    return BlockHashes.of(packed.array(), HASH_BYTES);
  }
}
