package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;

/** Writing end of a request ring, shared by all callers through a lock. Allocates nothing. */
final class RequestRing {
  private final ReentrantLock lock = new ReentrantLock();
  private final Command command = new Command();
  private final CommandRing.Producer commands;
  private final ByteRing.Producer data;

  RequestRing(MemorySegment channel, int ring) {
    this.commands = new CommandRing.Producer(channel, ring);
    this.data = new ByteRing.Producer(channel, ring);
  }

  /**
   * Writes one command.
   *
   * @param span its data, or null
   * @return false, with nothing submitted, when a ring is full
   */
  boolean tryWrite(
      int opcode, long requestId, long epoch, long scalar0, long scalar1, SpanWriter span) {
    lock.lock();
    try {
      if (!commands.hasRoom()) {
        return false;
      }
      command.set(opcode, 0, requestId, epoch, scalar0, scalar1);
      if (span != null) {
        int bytes = span.spanBytes();
        long at = data.tryClaim(bytes);
        if (at < 0) {
          return false;
        }
        span.writeTo(data.memory(), at);
        data.commit(bytes, command);
      }
      return commands.tryWrite(command);
    } finally {
      lock.unlock();
    }
  }

  static String full(int ring) {
    return "request ring is full: ring="
        + (ring == ChannelDescriptor.QUERY_REQUESTS ? "query" : "publish")
        + ", commands="
        + ChannelDescriptor.RING_CAPACITY
        + ", bytes="
        + ChannelDescriptor.BYTE_RING_BYTES
        + "; nothing was submitted";
  }
}
