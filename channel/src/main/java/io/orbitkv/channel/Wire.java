package io.orbitkv.channel;

/** Checks of values that another process wrote. */
final class Wire {
  private Wire() {}

  /** Throws unless {@code low <= value <= high}, naming all three. */
  static void require(String what, long value, long low, long high) {
    if (value < low || value > high) {
      throw new ProtocolException(
          value > high ? Status.LIMIT : Status.INVALID,
          what + "=" + value + ", allowed=" + low + ".." + high);
    }
  }

  /** Rounds up to a multiple of eight. */
  static long pad8(long bytes) {
    return (bytes + 7) & -8L;
  }
}
