package io.orbitkv.linux;

import java.util.List;

/**
 * What one {@link UnixConnection#receive} brought. Immutable; the caller owns the descriptors.
 *
 * @param byteCount bytes put into the buffer, {@link #END_OF_STREAM} or {@link #TIMED_OUT}
 * @param fds descriptors that came with the first of these bytes, closed on exec; often none
 * @param credentials sender's, or null when the socket does not pass them
 */
public record Received(int byteCount, List<Fd> fds, Ucred credentials) {
  /** The other side has closed, and all it sent was received. */
  public static final int END_OF_STREAM = 0;

  /** Nothing came in time; receive again, or give up. */
  public static final int TIMED_OUT = -1;

  static final Received TIMEOUT = new Received(TIMED_OUT, List.of(), null);

  /** Copies the list. */
  public Received {
    fds = List.copyOf(fds);
  }

  /** Closes all descriptors, for a receiver that has no use for them. */
  public void closeFds() {
    fds.forEach(Fd::close);
  }
}
