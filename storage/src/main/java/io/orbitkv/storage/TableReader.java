package io.orbitkv.storage;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Reads the tables of a file in order, a few ahead, so that the device is busy while a table is
 * taken in. Belongs to one thread; a table is valid until the next one is taken.
 */
final class TableReader implements AutoCloseable {
  private static final int AHEAD = 4;

  private final SsdFile file;
  private final int segments;
  private final Arena arena = Arena.ofShared();
  private final ExecutorService threads;
  private final MemorySegment[] buffers = new MemorySegment[AHEAD + 1];
  private final Future<?>[] pending = new Future<?>[AHEAD + 1];
  private int requested;
  private int taken;
  private boolean stuck;

  TableReader(SsdFile file) {
    this.file = file;
    this.segments = file.superblock().geometry().segments();
    this.threads =
        Executors.newFixedThreadPool(
            AHEAD, Thread.ofPlatform().daemon().name("orbitkv-ssd-scan-", 0).factory());
    for (int i = 0; i < buffers.length; i++) {
      buffers[i] = arena.allocate(file.superblock().geometry().tableBytes(), 4096);
    }
    while (requested < Math.min(AHEAD, segments)) {
      request();
    }
  }

  private void request() {
    int segment = requested++;
    int place = segment % buffers.length;
    pending[place] = threads.submit(() -> file.readTable(segment, buffers[place]));
  }

  /** The next table; null when the device does not give it. */
  MemorySegment next() {
    try {
      MemorySegment table =
          (MemorySegment)
              Bounded.get(file.path(), Bounded.BOUND_SECONDS, pending[taken++ % buffers.length]);
      if (requested < segments) {
        request();
      }
      return table;
    } catch (Bounded.NoAnswerException e) {
      stuck = true;
      throw e;
    } catch (IOException e) {
      throw new StorageException("SSD tables can not be read: path=" + file.path(), e);
    }
  }

  @Override
  public void close() {
    threads.shutdownNow();
    if (!stuck) { // else the device may still write there
      threads.close();
      arena.close();
    }
  }
}
