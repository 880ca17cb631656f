package io.orbitkv.app;

import java.util.List;
import sun.misc.Signal;

/** What the process does when it is asked to end. */
final class Signals {
  private static final int SIGNAL_EXIT = 128;

  private boolean asked;

  private Signals() {}

  /**
   * Runs something at the first SIGTERM or SIGINT, in a thread of its own; the second one ends the
   * process at once with a message.
   */
  @SuppressWarnings("sunapi") // the JDK has no other way to see a second signal
  static void onFirst(Runnable stop) {
    Signals state = new Signals();
    for (String name : List.of("TERM", "INT")) {
      Signal.handle(new Signal(name), signal -> state.received(signal.getNumber(), stop));
    }
  }

  private synchronized void received(int number, Runnable stop) {
    if (asked) {
      System.err.println("orbitkv: second signal, ending at once without draining");
      Runtime.getRuntime().halt(SIGNAL_EXIT + number);
    }
    asked = true;
    Thread.ofPlatform().name("orbitkv-stop").start(stop);
  }
}
