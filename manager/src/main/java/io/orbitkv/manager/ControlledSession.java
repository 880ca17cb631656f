package io.orbitkv.manager;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.linux.Signaller;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What the control thread knows of one session. Belongs to the control thread, but for the futures
 * and {@link #tryClaim}.
 */
final class ControlledSession {
  final int slot;
  final SessionMemory memory;
  final GrantTable table;
  final MemorySegment channel;
  final RingPair query;
  final RingPair publish;
  final String name;

  /** Completes once the core has settled the session: its memory is nobody's. */
  final CompletableFuture<Void> settled = new CompletableFuture<>();

  /** Withdrawals that the core has not finished, by registration. */
  final Map<Integer, CompletableFuture<Void>> withdrawals = new HashMap<>();

  long drainsSeen;
  boolean open = true;
  boolean settling; // the core has settled it; the next flush lets it go
  private final AtomicBoolean claimed = new AtomicBoolean();
  private final Runnable hangUp;
  private final Runnable latch;

  /**
   * Takes over a session's memory.
   *
   * @param name client and process, for the log
   * @param hangUp ends the session's socket
   * @param latch lets the socket end when the frames that have arrived are answered
   */
  ControlledSession(SessionMemory memory, String name, Runnable hangUp, Runnable latch) {
    this.slot = memory.slot();
    this.memory = memory;
    this.table = memory.table();
    this.channel = memory.channel();
    this.name = name;
    this.hangUp = hangUp;
    this.latch = latch;
    this.query =
        new RingPair(channel, ChannelDescriptor.QUERY_REQUESTS, ChannelDescriptor.QUERY_REPLIES);
    this.publish =
        new RingPair(
            channel, ChannelDescriptor.PUBLISH_REQUESTS, ChannelDescriptor.PUBLISH_REPLIES);
  }

  /**
   * Decides whether the session is opened or given up: true for the first who asks, the control
   * thread before it opens it or the connection's thread that waits no longer.
   */
  boolean tryClaim() {
    return claimed.compareAndSet(false, true);
  }

  RingPair byReplyRing(int ring) {
    return ring == ChannelDescriptor.PUBLISH_REPLIES ? publish : query;
  }

  void announceSleep(int sleeps) {
    SleepFlag.set(channel, ChannelDescriptor.MANAGER_SLEEPS_OFFSET, sleeps);
  }

  /** Takes no more commands, says so in the channel, and ends the socket. */
  void close(Signaller signaller) {
    close(signaller, hangUp);
  }

  /** As {@link #close}, but frames that have arrived are still answered. */
  void closeLatched(Signaller signaller) {
    close(signaller, latch);
  }

  private void close(Signaller signaller, Runnable endSocket) {
    if (open) {
      open = false;
      Memory.putIntVolatile(
          channel, ChannelDescriptor.SESSION_STATE_OFFSET, ChannelDescriptor.CLOSED);
      try {
        signaller.signal(memory.restoreWake());
        signaller.signal(memory.publishWake());
      } finally {
        endSocket.run();
      }
    }
  }

  /** The session is over for good: whoever waits for a withdrawal learns it here. */
  void settle(Signaller signaller) {
    try {
      close(signaller);
    } finally {
      withdrawals.values().forEach(withdrawal -> withdrawal.complete(null));
      withdrawals.clear();
      settled.complete(null);
    }
  }

  /** Requests of one kind and their replies. */
  static final class RingPair {
    final int requestRing;
    final CommandRing.Consumer requests;
    final ByteRing.Consumer requestBytes;
    final CommandRing.Producer replies;
    final ByteRing.Producer replyBytes;

    RingPair(MemorySegment channel, int requestRing, int replyRing) {
      this.requestRing = requestRing;
      this.requests = new CommandRing.Consumer(channel, requestRing);
      this.requestBytes = new ByteRing.Consumer(channel, requestRing);
      this.replies = new CommandRing.Producer(channel, replyRing);
      this.replyBytes = new ByteRing.Producer(channel, replyRing);
    }

    /** Copies the data of a command; see {@link ByteRing.Consumer#take}. */
    int take(io.orbitkv.channel.Command command, MemorySegment into) throws ProtocolException {
      return requestBytes.take(command, into);
    }
  }
}
