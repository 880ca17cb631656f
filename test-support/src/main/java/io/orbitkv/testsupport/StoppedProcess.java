package io.orbitkv.testsupport;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/** A process that SIGSTOP holds with all its threads, until this is closed. */
public final class StoppedProcess implements AutoCloseable {
  private static final long BOUND_SECONDS = 20;

  private final long pid;

  private StoppedProcess(long pid) {
    this.pid = pid;
  }

  /** Stops a process; returns once none of its threads runs. */
  public static StoppedProcess stop(long pid) {
    signal("STOP", pid);
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(BOUND_SECONDS);
    while (!isStopped(pid)) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("process does not stop: pid=" + pid);
      }
      LockSupport.parkNanos(1_000_000);
    }
    return new StoppedProcess(pid);
  }

  private static void signal(String name, long pid) {
    try {
      Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(pid)).start();
      if (!kill.waitFor(BOUND_SECONDS, TimeUnit.SECONDS) || kill.exitValue() != 0) {
        throw new AssertionError("signal " + name + " can not be sent: pid=" + pid);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted", e);
    }
  }

  /** Whether every thread is in state T, see proc_pid_stat(5). */
  private static boolean isStopped(long pid) {
    try (Stream<Path> threads = Files.list(Path.of("/proc/" + pid + "/task"))) {
      return threads.allMatch(StoppedProcess::isThreadStopped);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isThreadStopped(Path thread) {
    try {
      String stat = Files.readString(thread.resolve("stat"));
      return stat.charAt(stat.lastIndexOf(')') + 2) == 'T';
    } catch (IOException e) {
      return true; // the thread has ended
    }
  }

  /** Lets the process go on. */
  @Override
  public void close() {
    signal("CONT", pid);
  }
}
