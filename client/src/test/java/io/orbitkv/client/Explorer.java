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
  /** Makes the choices of one run. */
  interface Choices {
    /**
     * One of so many ways to go on, from 0.
     *
     * @param state hash of all that decides how the world goes on
     * @param end checks, where this is the first visit and nothing is under way, that the world can
     *     come to a good end from here; null otherwise
     */
    int choose(int ways, long state, Runnable end);
  }

  /** What an exploration met. */
  record Found(int states, int runs, int depth) {}

  /** Ends a run at a state from which others go on. */
  private static final class Stop extends Error {
    private static final long serialVersionUID = 1;

    Stop() {
      super("", null, false, false);
    }
  }

  private static final int[] NONE = {};

  private final Set<Long> seen = new HashSet<>();
  private final ArrayDeque<int[]> open = new ArrayDeque<>();

  /**
   * Explores.
   *
   * @param run runs one world with the choices given
   * @throws AssertionError with the choices that lead to what is wrong
   */
  Found explore(Consumer<Choices> run, int maxStates) {
    open.add(NONE);
    int runs = 0;
    int depth = 0;
    while (!open.isEmpty()) {
      int[] prefix = open.poll(); // breadth first: the first fault has the shortest way
      runs++;
      depth = Math.max(depth, prefix.length);
      replay(run, prefix);
      if (seen.size() > maxStates) {
        throw new AssertionError("states=" + seen.size() + ", bound=" + maxStates);
      }
    }
    return new Found(seen.size(), runs, depth);
  }

  private void replay(Consumer<Choices> run, int[] prefix) {
    int[] at = {0};
    Choices choices =
        (ways, state, end) -> {
          if (at[0] < prefix.length) {
            return prefix[at[0]++];
          }
          if (seen.add(state)) {
            for (int way = 0; way < ways; way++) {
              int[] next = Arrays.copyOf(prefix, prefix.length + 1);
              next[prefix.length] = way;
              open.add(next);
            }
            if (end != null) {
              end.run();
            }
          }
          throw new Stop();
        };
    try {
      run.accept(choices);
    } catch (Stop stop) { // others go on from here
      return;
    }
    throw new AssertionError("a run ended by itself");
  }
}
