package io.orbitkv.storage;

import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.IoUring;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Poll;
import java.util.function.Consumer;

/** One thread with one io_uring: requests move at the same time, a checksum after the other. */
final class UringIo implements BlockIo {
  private static final int DEPTH = 32;
  private static final int QUEUE = 256;
  private static final int WAIT_MS = 100;
  private static final long JOIN_MS = 5_000;
  private static final int EAGAIN_WAIT_MS = 1;

  private final RequestQueue queue = new RequestQueue(QUEUE);
  private final Consumer<IoRequest> done;
  private final IoUring ring;
  private final EventFd wake;
  private final Thread thread;
  private final IoRequest[] inFlight = new IoRequest[QUEUE];
  private final int[] free = new int[QUEUE];
  private int freeCount;
  private volatile boolean sleeps;
  private volatile boolean closed;
  private volatile int left;

  /**
   * Starts the thread.
   *
   * @throws LinuxException when the kernel has no io_uring for this process
   */
  UringIo(String name, Consumer<IoRequest> done) {
    this.done = done;
    for (int i = 0; i < QUEUE; i++) {
      free[freeCount++] = QUEUE - 1 - i;
    }
    this.ring = IoUring.create(QUEUE);
    try {
      this.wake = EventFd.create();
    } catch (Throwable t) { // a failed create leaves nothing behind
      ring.close();
      throw t;
    }
    this.thread = Thread.ofPlatform().daemon().name(name).start(this::run);
  }

  @Override
  public int depth() {
    return DEPTH;
  }

  @Override
  public boolean submit(IoRequest request) {
    if (!queue.offer(request)) {
      return false;
    }
    if (sleeps) {
      wake.signal();
    }
    return true;
  }

  @Override
  public String name() {
    return "io_uring";
  }

  private void run() {
    int[] fds = {ring.fd(), wake.fd()};
    long endNs = Long.MAX_VALUE;
    while (true) {
      int work = reap() + takeIn();
      left = QUEUE - freeCount;
      if (closed && endNs == Long.MAX_VALUE) {
        endNs = System.nanoTime() + JOIN_MS * 1_000_000;
      }
      boolean idle = left == 0 && queue.isEmpty();
      if (closed && (idle || System.nanoTime() - endNs >= 0)) {
        return;
      }
      if (work == 0) {
        await(fds);
      }
    }
  }

  private void await(int[] fds) {
    sleeps = true;
    if (queue.isEmpty()) { // else the one who added it may not have seen the sleep
      Poll.poll(fds, Poll.IN, ring.unsubmitted() > 0 ? EAGAIN_WAIT_MS : WAIT_MS);
    }
    sleeps = false;
    wake.drain();
  }

  private int takeIn() {
    int work = 0;
    while (freeCount > 0) {
      IoRequest request = queue.poll();
      if (request == null) {
        break;
      }
      work++;
      if (!request.begin()) {
        done.accept(request);
      } else {
        prepare(request);
        submit(); // at once: the device works while the next one is summed
      }
    }
    if (work == 0 && ring.unsubmitted() > 0) {
      submit();
    }
    return work;
  }

  private void prepare(IoRequest request) {
    int place = free[--freeCount];
    inFlight[place] = request;
    boolean taken =
        request.isRead()
            ? ring.tryRead(
                request.file.direct(), request.fileOffset, request.device, request.moved, place)
            : ring.tryWrite(
                request.file.direct(), request.fileOffset, request.device, request.moved, place);
    if (!taken) { // cannot be: the ring holds as many as there are places
      finish(place, -1);
    }
  }

  private void submit() {
    try {
      ring.submit();
    } catch (LinuxException e) {
      return; // tried again with the next look; until then the requests are not answered
    }
  }

  private int reap() {
    int work = 0;
    while (ring.nextCompletion()) {
      finish((int) ring.data(), ring.result());
      work++;
    }
    return work;
  }

  private void finish(int place, int result) {
    IoRequest request = inFlight[place];
    inFlight[place] = null;
    free[freeCount++] = place;
    request.end(result);
    done.accept(request);
  }

  @Override
  public void close() {
    closed = true;
    wake.signal();
    boolean interrupted = false;
    try {
      thread.join(2 * JOIN_MS);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive() || left > 0) {
      throw new IllegalStateException(
          "SSD requests do not return: number=" + left + ", waited ms=" + JOIN_MS);
    }
    ring.close();
    wake.close();
  }
}
