package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.PublishReply;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The Manager's side of one session on plain memory; a test makes its moves one by one. */
final class FakeManager {
  static final long EPOCH = 0x1234_5678_9abcL;
  static final int ARENA_BYTES = 4 << 20;

  final MemorySegment channel;
  final GrantTable table;
  final MemorySegment[] arenas;
  final EngineSession session;
  final CommandRing.Consumer queries;
  final CommandRing.Consumer publishes;
  final ByteRing.Consumer queryBytes;
  final ByteRing.Consumer publishBytes;
  final CommandRing.Producer queryReplies;
  final CommandRing.Producer publishReplies;
  final ByteRing.Producer queryReplyBytes;
  final ByteRing.Producer publishReplyBytes;
  final Command command = new Command();
  final Command reply = new Command();
  final MemorySegment data = Arena.ofAuto().allocate(Protocol.MAX_SPAN_BYTES, 8);
  int wakes;

  FakeManager() {
    this(
        newChannel(),
        GrantTable.format(memory(GrantTable.REGION_BYTES)),
        memory(ARENA_BYTES),
        memory(ARENA_BYTES));
  }

  /** On formatted memory. */
  FakeManager(MemorySegment channel, GrantTable table, MemorySegment... arenas) {
    this.channel = channel;
    this.table = table;
    this.arenas = arenas;
    session = new EngineSession(channel, table, EPOCH, () -> wakes++);
    queries = new CommandRing.Consumer(channel, ChannelDescriptor.QUERY_REQUESTS);
    publishes = new CommandRing.Consumer(channel, ChannelDescriptor.PUBLISH_REQUESTS);
    queryBytes = new ByteRing.Consumer(channel, ChannelDescriptor.QUERY_REQUESTS);
    publishBytes = new ByteRing.Consumer(channel, ChannelDescriptor.PUBLISH_REQUESTS);
    queryReplies = new CommandRing.Producer(channel, ChannelDescriptor.QUERY_REPLIES);
    publishReplies = new CommandRing.Producer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    queryReplyBytes = new ByteRing.Producer(channel, ChannelDescriptor.QUERY_REPLIES);
    publishReplyBytes = new ByteRing.Producer(channel, ChannelDescriptor.PUBLISH_REPLIES);
  }

  private static MemorySegment newChannel() {
    MemorySegment channel = memory(ChannelDescriptor.REGION_BYTES);
    ChannelDescriptor.format(channel, 0, EPOCH, 0);
    return channel;
  }

  private static MemorySegment memory(long bytes) {
    return Arena.ofAuto().allocate(bytes, 4096);
  }

  GrantState state(long operationId) {
    return GrantWord.state(table.wordAcquire(GrantWord.slotOf(operationId)));
  }

  /** Moves a record on as the Manager. */
  void move(long operationId, GrantState next) {
    int slot = GrantWord.slotOf(operationId);
    long word = table.wordAcquire(slot);
    if (GrantWord.generation(word) != GrantWord.generationOf(operationId)
        || !table.tryManagerMove(slot, word, next)) {
      throw new AssertionError("Manager could not move " + GrantWord.state(word) + " to " + next);
    }
  }

  /** Writes one entry of the plan at the start of the bank. */
  void plan(int index, int arena, int group, int page, long offset, int length, int crc) {
    long at = GrantTable.bankAt(0) + (long) index * PlanEntry.BYTES;
    PlanEntry.put(table.memory(), at, arena, group, page, index + 1L, offset, length, crc);
  }

  /** Names the plan and grants the first part. */
  void grant(long operationId, int entries) {
    table.setPlan(GrantWord.slotOf(operationId), 0, entries, 1);
    move(operationId, GrantState.GRANTED);
  }

  int crc(int index) {
    return PlanEntry.crc(table.memory(), GrantTable.bankAt(0) + (long) index * PlanEntry.BYTES);
  }

  void reap(long operationId, Status status, int stored, int held, int refused) {
    table.setOutcome(GrantWord.slotOf(operationId), status, stored, held, refused, "");
    move(operationId, GrantState.REAPED);
  }

  void answerPublish(long operationId, int... results) {
    int bytes = (int) PublishReply.byteSize(results.length);
    long at = publishReplyBytes.tryClaim(bytes);
    PublishReply.writeHeader(publishReplyBytes.memory(), at, results.length);
    for (int i = 0; i < results.length; i++) {
      PublishReply.putResult(publishReplyBytes.memory(), at, i, results[i]);
    }
    reply.set(4, Status.OK.code(), operationId, EPOCH, 0, 0);
    publishReplyBytes.commit(bytes, reply);
    if (!publishReplies.tryWrite(reply)) {
      throw new AssertionError("reply ring is full");
    }
  }

  void closeSession() {
    Memory.putIntRelease(channel, ChannelDescriptor.SESSION_STATE_OFFSET, ChannelDescriptor.CLOSED);
  }
}
