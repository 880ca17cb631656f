package io.orbitkv.client;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Goes through every reachable state of a world that is deterministic but for its choices: a world
 * is run again from its start with each prefix of choices that led to a state not seen before.
 */
final class Explorer {
  /** A state in which one of several things comes next. */
  interface Moment {
    /** How many things may come next. */
    int ways();

    /** Hash of all that decides how the world goes on. */
    long hash();

    /** Checks what must hold here. */
    void check();

    /**
     * Checks that the world can come to a good end from here; it need not be able to go on
     * afterwards.
     *
     * @return false when it has not tried, since something is under way
     */
    boolean checkEnd();
  }

  /** Makes the choices of one run. */
  interface Choices {
    /** One of the ways, from 0. */
    int choose(Moment moment);
  }

  /** What an exploration met. */
  record Found(int states, int transitions, int depth) {}

  /** Ends a run at a state from which others go on. */
  private static final class Stop extends Error {
    private static final long serialVersionUID = 1;

    Stop() {
      super("", null, false, false);
    }
  }

  private static final byte[] NONE = {};

  private final Set<Long> seen = new HashSet<>();
  private final ArrayDeque<byte[]> open = new ArrayDeque<>();
  private int transitions;
  private int depth;

  /**
   * Explores.
   *
   * @param run runs one world with the choices given
   * @throws AssertionError with the choices that lead to what is wrong
   */
  Found explore(Consumer<Choices> run, int maxStates) {
    open.add(NONE);
    while (!open.isEmpty()) {
      replay(run, open.poll()); // breadth first: the first fault has a short way
      if (seen.size() > maxStates) {
        throw new AssertionError("states=" + seen.size() + ", bound=" + maxStates);
      }
    }
    return new Found(seen.size(), transitions, depth);
  }

  private void replay(Consumer<Choices> run, byte[] prefix) {
    byte[][] way = {prefix};
    int[] at = {0};
    Choices choices =
        moment -> {
          if (at[0] == way[0].length) {
            way[0] = goOnFrom(moment, way[0]);
          }
          return way[0][at[0]++];
        };
    try {
      run.accept(choices);
    } catch (Stop stop) { // others go on from here
      return;
    }
    throw new AssertionError("a run ended by itself");
  }

  /** Leaves all ways but the first for later, and goes on by that where it can. */
  private byte[] goOnFrom(Moment moment, byte[] prefix) {
    if (!seen.add(moment.hash())) {
      throw new Stop();
    }
    int ways = moment.ways();
    if (ways > Byte.MAX_VALUE) {
      throw new AssertionError("ways=" + ways);
    }
    transitions += ways;
    depth = Math.max(depth, prefix.length);
    moment.check();
    for (int way = 1; way < ways; way++) {
      open.add(next(prefix, way));
    }
    if (moment.checkEnd()) {
      if (ways > 0) {
        open.add(next(prefix, 0));
      }
      throw new Stop();
    }
    return next(prefix, 0);
  }

  private static byte[] next(byte[] prefix, int way) {
    byte[] next = Arrays.copyOf(prefix, prefix.length + 1);
    next[prefix.length] = (byte) way;
    return next;
  }
}
