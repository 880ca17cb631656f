package io.orbitkv.core;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.Command;

/**
 * What the core asks of its edge. Called on the control thread, within a call into the core;
 * nothing here may call back into the core or block.
 */
public interface CoreOutput {
  /**
   * Sends a reply. The edge has made sure, before it passed the command in, that the ring has room.
   *
   * @param session session slot
   * @param ring one of the reply rings of {@link io.orbitkv.channel.ChannelDescriptor}
   * @param reply valid during the call only
   */
  void reply(int session, int ring, Command reply);

  /**
   * Byte ring beside a reply ring: the core claims, writes and commits there, then calls {@link
   * #reply}.
   */
  ByteRing.Producer replyBytes(int session, int ring);

  /** A restore's record moved: wake the engine's restore side if it sleeps. */
  void wakeRestore(int session);

  /** A publish's record moved: wake the engine's publish side if it sleeps. */
  void wakePublish(int session);

  /**
   * Every owner of the session is settled: its memory may be unmapped and its slot given to
   * another.
   */
  void sessionSettled(int session);

  /** The registration is withdrawn and none of its operations is left. */
  void unregistered(int session, int registrationId);

  /**
   * The engine broke the protocol: the edge ends the session. The core has taken in its loss
   * already.
   */
  void violation(int session, String what);
}
