package io.orbitkv.manager;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waits for what the control thread does. */
final class Waits {
  /** Most time that the control thread may take for one answer. */
  static final long ANSWER_MS = 5_000;

  private Waits() {}

  /**
   * Waits for an answer of the control thread.
   *
   * @throws RuntimeException what the call threw there
   * @throws IllegalStateException when there is no answer in time, or on interrupt
   */
  static <T> T answer(CompletableFuture<T> future) {
    try {
      return future.get(ANSWER_MS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new CompletionException(e.getCause());
    } catch (TimeoutException e) {
      throw new IllegalStateException("the control thread does not answer: ms=" + ANSWER_MS, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  /** Whether the future completes within a time, however it ends. */
  static boolean completes(CompletableFuture<?> future, long timeoutMs) {
    try {
      future.get(timeoutMs, TimeUnit.MILLISECONDS);
      return true;
    } catch (ExecutionException e) {
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
