package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;

/**
 * The Manager's part in a {@link Rehearsal}, on the thread of the engine. It has every block:
 * lookups are answered while they are submitted, restores and publishes when the rehearsal says so.
 */
final class RehearsalManager {
  private static final int REQUEST_BYTES = 8 << 10;

  private final GrantTable table;
  private final int blocks;
  private final int blockBytes;
  private final Requests queries;
  private final Requests publishes;
  private final CommandRing.Producer replies;
  private final ByteRing.Producer replyBytes;
  private final Command reply = new Command();

  /** A ring of requests. */
  private static final class Requests {
    private final Command command = new Command();
    private final MemorySegment data = MemorySegment.ofArray(new byte[REQUEST_BYTES]);
    private final CommandRing.Consumer commands;
    private final ByteRing.Consumer bytes;

    Requests(MemorySegment channel, int ring) {
      commands = new CommandRing.Consumer(channel, ring);
      bytes = new ByteRing.Consumer(channel, ring);
    }

    /** The next request, with its data freed; null when there is none. */
    Command next() {
      if (!commands.tryRead(command)) {
        return null;
      }
      bytes.take(command, data);
      return command;
    }

    void skipAll() {
      Command skipped = next();
      while (skipped != null) {
        skipped = next();
      }
    }
  }

  /**
   * Takes part in a session whose memory is formatted, and asks to be woken for each command.
   *
   * @param blocks blocks of each lookup, restore and publish
   */
  RehearsalManager(MemorySegment channel, GrantTable table, int blocks, int blockBytes) {
    this.table = table;
    this.blocks = blocks;
    this.blockBytes = blockBytes;
    queries = new Requests(channel, ChannelDescriptor.QUERY_REQUESTS);
    publishes = new Requests(channel, ChannelDescriptor.PUBLISH_REQUESTS);
    replies = new CommandRing.Producer(channel, ChannelDescriptor.QUERY_REPLIES);
    replyBytes = new ByteRing.Producer(channel, ChannelDescriptor.QUERY_REPLIES);
    SleepFlag.announce(channel, ChannelDescriptor.MANAGER_SLEEPS_OFFSET);
  }

  /** Takes what was submitted, and answers lookups. */
  void wake() {
    for (Command query = queries.next(); query != null; query = queries.next()) {
      if (query.opcode == Opcode.LOOKUP) {
        answer(query);
      }
    }
    publishes.skipAll();
  }

  private void answer(Command query) {
    reply.set(query.opcode, Status.OK.code(), query.requestId, query.epoch, 0, 0);
    int bytes = (int) LookupReply.byteSize(1, blocks, 1);
    long at = replyBytes.tryClaim(bytes);
    MemorySegment into = replyBytes.memory();
    LookupReply.writeHeader(into, at, LookupReply.READY, 1, blocks, 1, 0);
    long group = LookupReply.groupAt(at, 0, blocks);
    LookupReply.writeGroup(into, group, 0, MissReason.NONE.code(), blocks, blocks);
    LookupReply.putBits(into, group, 0, -1L >>> -blocks);
    LookupReply.writeLease(into, LookupReply.leaseAt(at, 0, 1, blocks), 1, blocks, 0, 0);
    replyBytes.commit(bytes, reply);
    replies.tryWrite(reply);
  }

  /** Grants an operation: its blocks lie in the arena one behind the other. */
  void grant(long operationId) {
    int slot = GrantWord.slotOf(operationId);
    move(slot, GrantState.PREPARING);
    for (int i = 0; i < blocks; i++) {
      long at = GrantTable.bankAt(i * PlanEntry.BYTES);
      PlanEntry.put(table.memory(), at, 0, 0, i, i + 1L, (long) i * blockBytes, blockBytes, 0);
    }
    table.setPlan(slot, 0, blocks, 1);
    move(slot, GrantState.GRANTED);
  }

  /** Ends an operation whose copy has ended. */
  void reap(long operationId, int stored) {
    int slot = GrantWord.slotOf(operationId);
    table.setOutcome(slot, Status.OK, stored, 0, 0, "");
    move(slot, GrantState.REAPED);
  }

  private void move(int slot, GrantState next) {
    if (!table.tryManagerMove(slot, table.wordAcquire(slot), next)) {
      throw new IllegalStateException("rehearsal: no move to " + next);
    }
  }
}
