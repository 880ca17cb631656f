package io.orbitkv.bench.replay;

import io.orbitkv.bench.Engine;
import io.orbitkv.client.ClientConfig;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupResult;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Plays requests of a trace in any order over some sessions, without end, and mixes in what engines
 * do besides: they look up and change their minds, they close and come again. Belongs to one
 * thread.
 */
public final class SoakPlayer implements AutoCloseable {
  private static final int BLOCK_BYTES = 4 << 10;
  private static final int PAGES = 256;
  private static final int CHANGES_MIND_EVERY = 16;
  private static final int REOPENS_EVERY = 256;

  private final Trace trace;
  private final Path socket;
  private final String name;
  private final Duration callBound;
  private final SplittableRandom random;
  private final Replay replay;
  private final BlockContent content;
  private final List<Engine> engines = new ArrayList<>();
  private long played;

  /**
   * Opens the sessions.
   *
   * @param name first part of the names of the instances
   * @param seed of the order of requests
   * @param callBound bound of a client's call
   */
  public SoakPlayer(
      Trace trace, Path socket, String name, int sessions, long seed, Duration callBound) {
    this.trace = trace;
    this.socket = socket;
    this.name = name;
    this.callBound = callBound;
    this.random = new SplittableRandom(seed);
    this.replay = new Replay(trace, new ReplayOptions(socket, BLOCK_BYTES, 1, false));
    this.content = new BlockContent(1, BLOCK_BYTES);
    try {
      for (int i = 0; i < sessions; i++) {
        engines.add(open(i));
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private Engine open(int index) {
    ClientConfig config =
        ClientConfig.defaults()
            .withSocket(socket)
            .withInstanceId(name + "-" + index)
            .withClientName("soak")
            .withTimeout(callBound)
            .withCopyThreads(1);
    return Engine.open(config, BLOCK_BYTES, PAGES);
  }

  /** Plays one request. */
  public void step() {
    played++;
    int index = random.nextInt(engines.size());
    long[] ids = trace.requests().get(random.nextInt(trace.requests().size()));
    if (ids.length == 0) {
      return;
    }
    if (played % REOPENS_EVERY == 0) {
      engines.get(index).close();
      engines.set(index, open(index));
    }
    Engine engine = engines.get(index);
    if (played % CHANGES_MIND_EVERY == 0) {
      LookupResult found = engine.lookup(content.hashes(ids));
      for (Lease lease : found.leases()) {
        engine.client().release(lease);
      }
    } else {
      replay.play(engine, ids);
    }
  }

  /** Requests so far. */
  public long played() {
    return played;
  }

  /** Bytes that were compared so far. */
  public long verifiedBytes() {
    return replay.verifiedBytes();
  }

  /** Bytes that were not what they must be so far. */
  public long wrongBytes() {
    return replay.wrongBytes();
  }

  /** Closes the sessions. */
  @Override
  public void close() {
    engines.forEach(Engine::close);
    engines.clear();
  }
}
