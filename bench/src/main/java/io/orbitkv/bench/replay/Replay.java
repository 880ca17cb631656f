package io.orbitkv.bench.replay;

import io.orbitkv.bench.Engine;
import io.orbitkv.bench.ManagerStatus;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.OrbitKvException;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.RestoreResult;
import io.orbitkv.linux.CpuClock;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * Plays a trace, request after request: looks the prefix up, restores what is held and compares it
 * byte by byte, then publishes the rest. A request's publish is visible before the next lookup.
 * Belongs to one thread; plays once.
 */
public final class Replay {
  private static final long MAX_PAGE_BYTES = 256L << 20;
  private static final Duration SETTLE = Duration.ofSeconds(5);
  private static final double NS = 1e9;

  private final Trace trace;
  private final ReplayOptions options;
  private final BlockContent content;
  private final Histogram lookupNs = new Histogram(3);
  private final Histogram restoreNs = new Histogram(3);
  private final Histogram publishNs = new Histogram(3);
  private long lookupBlocks;
  private long hitBlocks;
  private long restoredBlocks;
  private long publishedBlocks;
  private long verifiedBytes;
  private long wrongBytes;
  private long restoreSumNs;
  private long publishSumNs;

  /** Prepares to play a trace. */
  public Replay(Trace trace, ReplayOptions options) {
    this.trace = trace;
    this.options = options;
    this.content = new BlockContent(options.seed(), options.blockBytes());
  }

  /**
   * Plays the trace against the Manager.
   *
   * @throws OrbitKvException when a call fails
   * @throws IOException when the Manager process cannot be observed
   */
  public ReplayResult run() throws IOException {
    ManagerStatus before = ManagerStatus.read(options.socket());
    double cpuBefore = CpuClock.cpuSeconds(before.managerPid());
    long start = System.nanoTime();
    try (Engine engine = Engine.open(options.socket(), options.blockBytes(), pages())) {
      play(engine);
    }
    double seconds = (System.nanoTime() - start) / NS;
    double cpu = CpuClock.cpuSeconds(before.managerPid()) - cpuBefore;
    ManagerStatus after = ManagerStatus.awaitSettled(options.socket(), SETTLE);
    return result(before, after, seconds, cpu);
  }

  /** Bytes that were compared so far. */
  long verifiedBytes() {
    return verifiedBytes;
  }

  /** Bytes that were not what they must be so far. */
  long wrongBytes() {
    return wrongBytes;
  }

  private int pages() {
    long most = Math.min(MAX_PAGE_BYTES / options.blockBytes(), Protocol.MAX_HASHES / 4);
    return Math.toIntExact(Math.clamp(trace.longest(), 1, Math.max(1, most)));
  }

  private void play(Engine engine) {
    ProgressBar bar =
        new ProgressBar(options.progress() ? System.err : null, trace.requests().size());
    try {
      int done = 0;
      for (long[] ids : trace.requests()) {
        if (ids.length > 0) {
          play(engine, ids);
        }
        bar.update(++done, lookupBlocks, hitBlocks);
      }
    } finally {
      bar.end();
    }
  }

  /** Plays one request by an engine that holds its pages. */
  void play(Engine engine, long[] ids) {
    BlockHashes hashes = content.hashes(ids);
    lookupBlocks += ids.length;
    int hit = restorePrefix(engine, ids, hashes);
    hitBlocks += hit;
    for (int from = hit; from < ids.length; from += engine.pages()) {
      publish(engine, ids, hashes, from, Math.min(ids.length, from + engine.pages()));
    }
  }

  /** Restores the held prefix, as many blocks at a time as there are pages; returns its length. */
  private int restorePrefix(Engine engine, long[] ids, BlockHashes hashes) {
    int hit = 0;
    while (hit < ids.length) {
      int to = Math.min(ids.length, hit + engine.pages());
      long start = System.nanoTime();
      LookupResult found = engine.lookup(hashes.slice(hit, to));
      lookupNs.recordValue(System.nanoTime() - start);
      int prefix = found.leases().isEmpty() ? 0 : found.prefix();
      if (prefix > 0) {
        restore(engine, Arrays.copyOfRange(ids, hit, hit + prefix), found);
      }
      hit += prefix;
      if (hit < to) {
        break;
      }
    }
    return hit;
  }

  private void restore(Engine engine, long[] ids, LookupResult found) {
    for (int i = 0; i < ids.length; i++) {
      engine.page(i).fill(BlockContent.GUARD);
    }
    long start = System.nanoTime();
    RestoreResult restored = engine.restore(found.leases().getFirst(), ids.length);
    long took = System.nanoTime() - start;
    restoreNs.recordValue(took);
    restoreSumNs += took;
    if (restored.status() != Status.OK) {
      throw new OrbitKvException(
          restored.status(), "restore: blocks=" + ids.length + ", " + restored.message());
    }
    restoredBlocks += ids.length;
    for (int i = 0; i < ids.length; i++) {
      wrongBytes += content.wrongBytes(ids[i], engine.page(i));
      verifiedBytes += options.blockBytes();
    }
  }

  private void publish(Engine engine, long[] ids, BlockHashes hashes, int from, int to) {
    for (int i = from; i < to; i++) {
      content.fill(ids[i], engine.page(i - from));
    }
    long start = System.nanoTime();
    PublishResult published =
        engine.publish(hashes.slice(from, to), from, from == 0 ? null : hashes.get(from - 1));
    long took = System.nanoTime() - start;
    publishNs.recordValue(took);
    publishSumNs += took;
    if (published.status() != Status.OK && published.status() != Status.POOL_FULL) {
      throw new OrbitKvException(
          published.status(), "publish: blocks=" + (to - from) + ", " + published.message());
    }
    publishedBlocks += published.stored();
  }

  private ReplayResult result(
      ManagerStatus before, ManagerStatus after, double seconds, double cpuSeconds) {
    List<String> leaks = after.leaks();
    return new ReplayResult(
        trace.name(),
        trace.requests().size(),
        lookupBlocks,
        hitBlocks,
        restoredBlocks,
        publishedBlocks,
        after.number("evicted_blocks_total") - before.number("evicted_blocks_total"),
        verifiedBytes,
        wrongBytes,
        seconds,
        restoreSumNs / NS,
        publishSumNs / NS,
        restoredBlocks * options.blockBytes(),
        publishedBlocks * options.blockBytes(),
        ReplayResult.Percentiles.of(lookupNs),
        ReplayResult.Percentiles.of(restoreNs),
        ReplayResult.Percentiles.of(publishNs),
        cpuSeconds,
        leaks);
  }
}
