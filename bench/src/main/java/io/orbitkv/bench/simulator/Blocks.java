package io.orbitkv.bench.simulator;

import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Protocol;
import io.orbitkv.client.BlockHashes;
import java.lang.foreign.MemorySegment;

/**
 * The blocks that there are: chains in two namespaces, which differ in block size and layers. What
 * a block holds follows from its key, so that any other content is seen.
 */
final class Blocks {
  static final int NAMESPACES = 2;
  static final int CHAINS = 24;
  static final int CHAIN_BLOCKS = 24;
  static final int HASH_BYTES = 16;

  /** Bytes of a layer of a page. */
  static final int LAYER_BYTES = 512;

  private static final long STEP = 0x9e37_79b9_7f4a_7c15L;
  private static final BlockHashes[][] HASHES = hashes();

  private Blocks() {}

  private static BlockHashes[][] hashes() {
    BlockHashes[][] all = new BlockHashes[NAMESPACES][CHAINS];
    for (int namespace = 0; namespace < NAMESPACES; namespace++) {
      for (int chain = 0; chain < CHAINS; chain++) {
        byte[] bytes = new byte[CHAIN_BLOCKS * HASH_BYTES];
        MemorySegment into = MemorySegment.ofArray(bytes);
        for (int i = 0; i < CHAIN_BLOCKS; i++) {
          long index = index(chain, i);
          Memory.putLong(into, (long) i * HASH_BYTES, Mix.mix(index + 1)); // same in both
          Memory.putLong(into, (long) i * HASH_BYTES + 8, index);
        }
        all[namespace][chain] = BlockHashes.of(bytes, HASH_BYTES);
      }
    }
    return all;
  }

  /** Hashes of a chain. */
  static BlockHashes hashes(int namespace, int chain) {
    return HASHES[namespace][chain];
  }

  /** Number of a block within its namespace. */
  static int index(int chain, int position) {
    return chain * CHAIN_BLOCKS + position;
  }

  static int layers(int namespace) {
    return namespace + 1;
  }

  static int blockBytes(int namespace) {
    return layers(namespace) * LAYER_BYTES;
  }

  static byte[] digest(int namespace) {
    byte[] digest = new byte[Protocol.NAMESPACE_BYTES];
    digest[0] = (byte) (namespace + 1);
    return digest;
  }

  private static long firstWord(int namespace, int index, int layer) {
    return Mix.mix((long) namespace << 48 | (long) layer << 32 | index + 1L);
  }

  /** Writes one layer of a block. */
  static void fill(MemorySegment into, long at, int namespace, int index, int layer) {
    long word = firstWord(namespace, index, layer);
    for (long end = at + LAYER_BYTES; at < end; at += Long.BYTES) {
      Memory.putLong(into, at, word);
      word += STEP;
    }
  }

  /** Whether memory holds one layer of a block. */
  static boolean holds(MemorySegment from, long at, int namespace, int index, int layer) {
    long word = firstWord(namespace, index, layer);
    long differs = 0;
    for (long end = at + LAYER_BYTES; at < end; at += Long.BYTES) {
      differs |= Memory.getLong(from, at) ^ word;
      word += STEP;
    }
    return differs == 0;
  }
}
