package io.orbitkv.app;

import java.util.List;
import org.slf4j.ILoggerFactory;
import org.slf4j.LoggerFactory;

/**
 * Prepares, in a thread of its own while the command line is parsed, what every Manager needs
 * before it can touch its pool: making the handles of system calls and opening the log take longer
 * than the parsing, and the pool is what a start waits for.
 */
final class EarlyStart {
  /** Classes that make handles of system calls when they are initialised, most urgent first. */
  static final List<String> HANDLES =
      List.of(
          "io.orbitkv.linux.FileCalls",
          "io.orbitkv.linux.ProcessCalls",
          "io.orbitkv.linux.MemoryCalls",
          "io.orbitkv.linux.WaitCalls",
          "io.orbitkv.linux.SocketCalls");

  /** How many of them are needed before the pool. */
  private static final int BEFORE_POOL = 3;

  private EarlyStart() {}

  /** Begins when the arguments ask for a Manager. */
  static void begin(String... arguments) {
    if (arguments.length > 0 && arguments[0].equals("manager")) {
      Thread.ofPlatform().daemon().name("orbitkv-early").start(EarlyStart::prepare);
    }
  }

  /**
   * Opens the log. Whoever asks meanwhile waits here, since the log gives substitutes to those who
   * come while it is being opened.
   */
  static synchronized ILoggerFactory openLog() {
    return LoggerFactory.getILoggerFactory();
  }

  private static void prepare() {
    try {
      HANDLES.subList(0, BEFORE_POOL).forEach(EarlyStart::initialise);
      openLog();
      HANDLES.subList(BEFORE_POOL, HANDLES.size()).forEach(EarlyStart::initialise);
    } catch (LinkageError e) {
      return; // whoever needs the class meets the same error and reports it
    }
  }

  private static void initialise(String name) {
    try {
      Class.forName(name);
    } catch (ClassNotFoundException e) {
      throw new NoClassDefFoundError(name);
    }
  }
}
