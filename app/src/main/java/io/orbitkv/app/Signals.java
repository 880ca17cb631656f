package io.orbitkv.app;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;

/**
 * What the process does when it is asked to end. The JDK shows a second signal only to {@code
 * sun.misc.Signal} of module jdk.unsupported, which the compiler warns of whoever names it; so it
 * is reached by reflection.
 */
final class Signals {
  private static final int SIGNAL_EXIT = 128;

  private boolean asked;

  private Signals() {}

  /**
   * Runs something at the first SIGTERM or SIGINT, in a thread of its own; the second one ends the
   * process at once with a message.
   */
  static void onFirst(Runnable stop) {
    Signals state = new Signals();
    try {
      Class<?> signal = Class.forName("sun.misc.Signal");
      Class<?> handler = Class.forName("sun.misc.SignalHandler");
      Object proxy =
          Proxy.newProxyInstance(
              Signals.class.getClassLoader(),
              new Class<?>[] {handler},
              (self, method, arguments) -> {
                state.received((int) signal.getMethod("getNumber").invoke(arguments[0]), stop);
                return null;
              });
      for (String name : List.of("TERM", "INT")) {
        signal
            .getMethod("handle", signal, handler)
            .invoke(null, signal.getConstructor(String.class).newInstance(name), proxy);
      }
    } catch (ClassNotFoundException | NoSuchMethodException | IllegalAccessException e) {
      throw new IllegalStateException("this JDK has no module jdk.unsupported", e);
    } catch (InvocationTargetException | InstantiationException e) {
      throw new IllegalStateException("signals cannot be handled", e);
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
