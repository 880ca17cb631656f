package io.orbitkv.storage;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waits at the start for a device, which may never answer. */
final class Bounded {
  /** Longest wait for one answer. */
  static final int BOUND_SECONDS = 60;

  private Bounded() {}

  /** What was begun is still going on: its descriptor and its memory must stay. */
  static final class NoAnswerException extends StorageException {
    private static final long serialVersionUID = 1;

    NoAnswerException(Path path, int seconds) {
      super("SSD file does not answer: path=" + path + ", waited s=" + seconds);
    }
  }

  /**
   * Does something with a file on a thread of its own.
   *
   * @throws NoAnswerException when that is not done within the bound
   * @throws IOException what it threw
   */
  static <T> T call(Path path, int seconds, Callable<T> work) throws IOException {
    FutureTask<T> task = new FutureTask<>(work);
    Thread.ofPlatform().daemon().name("orbitkv-ssd-open").start(task);
    return get(path, seconds, task);
  }

  /** As {@link #call}, for what has begun. */
  static <T> T get(Path path, int seconds, Future<T> work) throws IOException {
    try {
      return work.get(seconds, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw new NoAnswerException(path, seconds);
    } catch (ExecutionException e) {
      switch (e.getCause()) {
        case IOException cause -> throw cause;
        case RuntimeException cause -> throw cause;
        case Error cause -> throw cause;
        default -> throw new StorageException("SSD file can not be used: path=" + path, e);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StorageException("interrupted while an SSD file was read: path=" + path, e);
    }
  }
}
