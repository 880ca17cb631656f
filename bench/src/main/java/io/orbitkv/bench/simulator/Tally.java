package io.orbitkv.bench.simulator;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** How often each of some things happened. */
final class Tally<E extends Enum<E>> {
  private final Map<E, Long> counts;

  Tally(Class<E> type) {
    counts = new EnumMap<>(type);
  }

  void add(E what) {
    add(what, 1);
  }

  void add(Tally<E> other) {
    other.counts.forEach(this::add);
  }

  private void add(E what, long count) {
    counts.merge(what, count, Long::sum);
  }

  long of(E what) {
    return counts.getOrDefault(what, 0L);
  }

  /** Counts by name, in the order of the names. */
  Map<String, Long> byName() {
    Map<String, Long> named = new TreeMap<>();
    counts.forEach((what, count) -> named.put(label(what), count));
    return named;
  }

  /** Name for people. */
  static String label(Enum<?> what) {
    return what.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
