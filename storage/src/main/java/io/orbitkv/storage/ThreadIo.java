package io.orbitkv.storage;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** Positional reads and writes on a few threads. A request that never returns costs one thread. */
final class ThreadIo implements BlockIo {
  static final int THREADS = 8;
  private static final int QUEUE = 256;
  private static final long PARK_NS = 100_000_000;
  private static final long JOIN_MS = 5_000;

  private final RequestQueue queue = new RequestQueue(QUEUE);
  private final Consumer<IoRequest> done;
  private final Worker[] workers = new Worker[THREADS];
  private final AtomicInteger busy = new AtomicInteger();
  private volatile boolean closed;

  private final class Worker extends Thread {
    private volatile boolean parked;

    Worker(String name) {
      super(name);
      setDaemon(true);
    }

    @Override
    public void run() {
      while (true) {
        IoRequest request = queue.poll();
        if (request != null) {
          busy.incrementAndGet();
          perform(request);
          busy.decrementAndGet();
          done.accept(request);
        } else if (closed) {
          return;
        } else {
          parked = true;
          if (queue.isEmpty() && !closed) {
            LockSupport.parkNanos(this, PARK_NS);
          }
          parked = false;
        }
      }
    }
  }

  ThreadIo(String name, Consumer<IoRequest> done) {
    this.done = done;
    for (int i = 0; i < THREADS; i++) {
      workers[i] = new Worker(name + "-" + i);
      workers[i].start();
    }
  }

  private static void perform(IoRequest request) {
    if (!request.begin()) {
      return;
    }
    long moved =
        request.isRead()
            ? request.file.read(request.fileOffset, request.device, request.moved)
            : request.file.write(request.fileOffset, request.device, request.moved);
    request.end(moved);
  }

  @Override
  public int depth() {
    return THREADS;
  }

  @Override
  public boolean submit(IoRequest request) {
    if (!queue.offer(request)) {
      return false;
    }
    for (Worker worker : workers) {
      if (worker.parked) {
        LockSupport.unpark(worker);
        return true;
      }
    }
    return true;
  }

  @Override
  public String name() {
    return "pread";
  }

  @Override
  public void close() {
    closed = true;
    long deadline = System.nanoTime() + JOIN_MS * 1_000_000;
    boolean interrupted = false;
    for (Worker worker : workers) {
      LockSupport.unpark(worker);
      try {
        worker.join(Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (busy.get() > 0) {
      throw new IllegalStateException(
          "SSD requests do not return: number=" + busy.get() + ", waited ms=" + JOIN_MS);
    }
  }
}
