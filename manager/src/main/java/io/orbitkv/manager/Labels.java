package io.orbitkv.manager;

import java.util.Locale;

/** Names of enum constants in metrics and JSON. */
final class Labels {
  private Labels() {}

  /** The constant's name in lower case. */
  static String of(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }
}
