package io.orbitkv.manager;

import io.orbitkv.linux.Fd;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The memory of the pool: one sealed memfd an arena, mapped here, touched for the first time by a
 * few threads while the rest of the Manager starts. Thread-safe.
 */
final class PoolArenas implements AutoCloseable {
  private static final long CHUNK_BYTES = 4L << 20;
  private static final int MAX_TOUCH_THREADS = 8;
  private static final long JOIN_MS = 10_000;

  private final long[] byteSizes;
  private final long totalBytes;
  private final List<Fd> fds = new ArrayList<>();
  private final List<Mapping> mappings = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private final AtomicLong nextByte = new AtomicLong();
  private final AtomicLong touchedBytes = new AtomicLong();
  private final CompletableFuture<Void> ready = new CompletableFuture<>();
  private volatile boolean closed;

  private PoolArenas(long[] byteSizes) {
    this.byteSizes = byteSizes.clone();
    long sum = 0;
    for (long bytes : byteSizes) {
      sum += bytes;
    }
    this.totalBytes = sum;
  }

  /**
   * Creates and maps the arenas and begins to touch them.
   *
   * @param byteSizes bytes of each arena
   * @param cpus processors of this process
   * @throws ManagerException when the kernel refuses; nothing is left then
   */
  static PoolArenas create(long[] byteSizes, boolean hugePages, int cpus) {
    PoolArenas arenas = new PoolArenas(byteSizes);
    try {
      arenas.open(hugePages ? Memfd.PageSize.HUGE_2M : Memfd.PageSize.NORMAL);
      arenas.startTouching(Math.clamp(cpus, 2, MAX_TOUCH_THREADS));
      return arenas;
    } catch (LinuxException e) {
      arenas.close();
      throw new ManagerException(
          "pool can not be created: bytes="
              + arenas.totalBytes
              + ", hugePages="
              + hugePages
              + ": "
              + e.getMessage(),
          e);
    } catch (Throwable t) { // a failed create leaves nothing behind
      arenas.close();
      throw t;
    }
  }

  private void open(Memfd.PageSize pages) {
    for (int i = 0; i < byteSizes.length; i++) {
      Fd fd = Memfd.create("orbitkv-arena-" + i, byteSizes[i], pages);
      fds.add(fd);
      Mapping mapping = Mapping.map(fd, byteSizes[i], Mapping.Access.READ_WRITE, false);
      mappings.add(mapping);
      mapping.doNotFork();
    }
  }

  private void startTouching(int count) {
    for (int i = 0; i < count; i++) {
      Thread thread =
          Thread.ofPlatform().daemon().name("orbitkv-touch-" + i).unstarted(this::touch);
      threads.add(thread);
      thread.start();
    }
  }

  private void touch() {
    try {
      long at = nextByte.getAndAdd(CHUNK_BYTES);
      while (at < totalBytes && !closed) {
        long length = Math.min(CHUNK_BYTES, totalBytes - at);
        touch(at, length);
        if (touchedBytes.addAndGet(length) == totalBytes) {
          ready.complete(null);
        }
        at = nextByte.getAndAdd(CHUNK_BYTES);
      }
    } catch (LinuxException e) {
      ready.completeExceptionally(
          new ManagerException("pool can not be touched: " + e.getMessage(), e));
    }
  }

  /** Touches a range of the pool, which may span arenas. */
  private void touch(long at, long length) {
    long arenaStart = 0;
    for (int i = 0; i < byteSizes.length; i++) {
      long from = Math.max(at, arenaStart);
      long to = Math.min(at + length, arenaStart + byteSizes[i]);
      if (from < to) {
        mappings.get(i).populateWrite(from - arenaStart, to - from);
      }
      arenaStart += byteSizes[i];
    }
  }

  /**
   * Completes when every page is present; fails with {@link ManagerException} when that can't be.
   */
  CompletableFuture<Void> ready() {
    return ready;
  }

  /** True once every page is present. */
  boolean isReady() {
    return ready.isDone() && !ready.isCompletedExceptionally();
  }

  /** How much is present, 0 to 100; 100 only when all is. */
  int readyPercent() {
    return isReady() ? 100 : (int) Math.min(99, touchedBytes.get() * 100 / totalBytes);
  }

  /** Number of arenas. */
  int count() {
    return byteSizes.length;
  }

  /** Bytes of one arena. */
  long byteSize(int arena) {
    return byteSizes[arena];
  }

  /** Memory of each arena, mapped until this is closed. */
  List<MemorySegment> segments() {
    return mappings.stream().map(Mapping::segment).toList();
  }

  /** Bytes of all arenas. */
  long totalBytes() {
    return totalBytes;
  }

  /** Descriptor of one arena, open until this is closed. */
  Fd fd(int arena) {
    return fds.get(arena);
  }

  /** Idempotent: ends the touching, unmaps and closes. */
  @Override
  public synchronized void close() {
    closed = true;
    ready.completeExceptionally(new ManagerException("the Manager has stopped"));
    boolean interrupted = false;
    for (Thread thread : threads) {
      try {
        thread.join(JOIN_MS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    mappings.forEach(Mapping::close);
    fds.forEach(Fd::close);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
