package io.orbitkv.bench;

import io.orbitkv.channel.Status;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.PublishResult;
import java.util.SplittableRandom;
import java.util.stream.LongStream;

/** Blocks that a bench has published, with ids from 0 on. Belongs to one thread. */
final class ResidentBlocks {
  private static final long SEED = 42;

  private final Engine engine;
  private final SplittableRandom random = new SplittableRandom(SEED);
  private long count;

  /**
   * Opens them.
   *
   * @param count blocks that the Manager holds already
   */
  ResidentBlocks(Engine engine, long count) {
    this.engine = engine;
    this.count = count;
  }

  /** Publishes further blocks, each batch a chain of its own. */
  void publish(long blocks, int batch) {
    for (long end = count + blocks; count < end; ) {
      int size = (int) Math.min(batch, end - count);
      PublishResult result = engine.publish(next(size), 0, null);
      if (result.status() != Status.OK || result.stored() != size) {
        throw new IllegalStateException(
            "publish: wanted=" + size + ", stored=" + result.stored() + ", " + result.message());
      }
    }
  }

  /** Hashes of blocks that were never published, and will count as published. */
  BlockHashes next(int size) {
    long[] ids = new long[size];
    for (int i = 0; i < size; i++) {
      ids[i] = count++;
    }
    return Mix.hashes(SEED, ids);
  }

  /** Hashes of blocks that were published one after the other, from a random one on. */
  BlockHashes chain(int size) {
    long first = random.nextLong(count - size + 1);
    return Mix.hashes(SEED, LongStream.range(first, first + size).toArray());
  }

  /** Hashes of published blocks at random, none twice. */
  BlockHashes random(int size) {
    long[] ids = random.longs(0, count).distinct().limit(size).toArray();
    return Mix.hashes(SEED, ids);
  }
}
