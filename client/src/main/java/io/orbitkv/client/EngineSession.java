package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.PublishReply;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The engine's view of one session: its rings, its grant table and the operations in it. No threads
 * and no system calls; whoever calls does the work. Thread-safe.
 */
final class EngineSession {
  private static final int PUBLISH_REPLY_BYTES = 8 + Protocol.MAX_HASHES;

  private final MemorySegment channel;
  private final GrantTable table;
  private final long epoch;
  private final Runnable managerWake;
  private final RequestRing queries;
  private final RequestRing publishes;

  private final int[] freeSlots = new int[GrantTable.RECORDS];
  private int freeCount = GrantTable.RECORDS;

  private final AtomicReferenceArray<EngineOperation> operations =
      new AtomicReferenceArray<>(GrantTable.RECORDS);

  /** Bit of each slot with an operation that has more steps to make. */
  private final AtomicLongArray active = new AtomicLongArray(GrantTable.RECORDS / Long.SIZE);

  private final ReentrantLock publishReplyLock = new ReentrantLock();
  private final CommandRing.Consumer publishReplies;
  private final ByteRing.Consumer publishReplyBytes;
  private final Command publishReply = new Command();
  private MemorySegment publishReplyData;

  private volatile String over;

  /**
   * A session on mapped, checked memory.
   *
   * @param channel region of {@link ChannelDescriptor}
   * @param epoch low half of the Manager epoch
   * @param managerWake signals manager-wake
   */
  EngineSession(MemorySegment channel, GrantTable table, long epoch, Runnable managerWake) {
    this.channel = channel;
    this.table = table;
    this.epoch = epoch;
    this.managerWake = managerWake;
    this.queries = new RequestRing(channel, ChannelDescriptor.QUERY_REQUESTS);
    this.publishes = new RequestRing(channel, ChannelDescriptor.PUBLISH_REQUESTS);
    this.publishReplies = new CommandRing.Consumer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    this.publishReplyBytes = new ByteRing.Consumer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    for (int i = 0; i < GrantTable.RECORDS; i++) {
      freeSlots[i] = GrantTable.RECORDS - 1 - i;
    }
  }

  MemorySegment channel() {
    return channel;
  }

  GrantTable table() {
    return table;
  }

  long epoch() {
    return epoch;
  }

  /** Ends the session for all who look; the first reason stays. */
  synchronized void end(String reason) {
    if (over == null) {
      over = reason;
    }
  }

  /** True once the Manager takes no more commands of this session, or is gone. */
  boolean isOver() {
    if (over != null) {
      return true;
    }
    try {
      if (Memory.getIntAcquire(channel, ChannelDescriptor.SESSION_STATE_OFFSET)
          == ChannelDescriptor.OPEN) {
        return false;
      }
      end("the Manager has closed it");
    } catch (IllegalStateException e) { // it ended, and was closed, since the first look
      end("its memory is unmapped");
    }
    return true;
  }

  /** Why the session is over; null while it is open. */
  String overReason() {
    return over;
  }

  void requireOpen() {
    if (isOver()) {
      throw new OrbitKvException(Status.SESSION_ENDED, "session is over: " + over);
    }
  }

  /** Submits a command on a request ring and wakes the Manager if it sleeps; false when full. */
  boolean trySubmit(
      int ring, int opcode, long requestId, long scalar0, long scalar1, SpanWriter span) {
    RequestRing into = ring == ChannelDescriptor.QUERY_REQUESTS ? queries : publishes;
    if (!into.tryWrite(opcode, requestId, epoch, scalar0, scalar1, span)) {
      return false;
    }
    wakeManager();
    return true;
  }

  /** Gives a lease back without waiting for the answer; when that is impossible its age ends it. */
  void releaseQuietly(long leaseId) {
    if (!isOver()) {
      trySubmit(
          ChannelDescriptor.QUERY_REQUESTS, Opcode.RELEASE, QueryCalls.NO_CALL, leaseId, 0, null);
    }
  }

  /** Wakes the Manager if it sleeps; what was written before is visible to its re-check. */
  void wakeManager() {
    SleepFlag.fence();
    if (SleepFlag.isAnnounced(channel, ChannelDescriptor.MANAGER_SLEEPS_OFFSET)) {
      managerWake.run();
    }
  }

  /** A slot for an operation, or -1. */
  int takeSlot() {
    synchronized (freeSlots) {
      return freeCount == 0 ? -1 : freeSlots[--freeCount];
    }
  }

  /** The slot's record is Acknowledged, or was never used. */
  void giveBackSlot(int slot) {
    synchronized (freeSlots) {
      freeSlots[freeCount++] = slot;
    }
  }

  /** Slots that no operation uses. */
  int freeSlots() {
    synchronized (freeSlots) {
      return freeCount;
    }
  }

  void add(int slot, EngineOperation operation) {
    operations.set(slot, operation);
    active.getAndAccumulate(slot >> 6, 1L << (slot & 63), (bits, bit) -> bits | bit);
  }

  void remove(int slot) {
    active.getAndAccumulate(slot >> 6, 1L << (slot & 63), (bits, bit) -> bits & ~bit);
    operations.set(slot, null);
  }

  /** Words of {@link #activeBits}. */
  int activeWords() {
    return active.length();
  }

  /** Bit i is set when slot 64·{@code word} + i has an operation with more steps to make. */
  long activeBits(int word) {
    return active.get(word);
  }

  /** The operation of a slot, or null. */
  EngineOperation operation(int slot) {
    return operations.get(slot);
  }

  /**
   * What the publishes of this session are at. Takes no lock.
   *
   * @param overdueNs age from which a publish is overdue
   */
  PublishActivity publishActivity(long nowNs, long overdueNs, boolean managerAlive) {
    int pending = 0;
    int overdue = 0;
    long longestNs = 0;
    for (int slot = 0; slot < operations.length(); slot++) {
      EngineOperation operation = operations.get(slot);
      boolean isPending =
          operation instanceof PublishOperation && operation.isSubmitted() && !operation.isDone();
      if (isPending) {
        long ageNs = nowNs - operation.submittedNs();
        pending++;
        overdue += ageNs > overdueNs ? 1 : 0;
        longestNs = Math.max(longestNs, ageNs);
      }
    }
    return new PublishActivity(
        pending, over == null ? 0 : pending, longestNs, overdue, managerAlive);
  }

  /** True when no operation has steps left. */
  boolean isIdle() {
    for (int word = 0; word < active.length(); word++) {
      if (active.get(word) != 0) {
        return false;
      }
    }
    return true;
  }

  /** True when answers to publishes wait. */
  boolean hasPublishReplies() {
    return publishReplies.hasNext();
  }

  /** Hands the answers that wait to their publishes, unless another thread is at it. */
  void takePublishReplies() {
    if (!publishReplyLock.tryLock()) {
      return;
    }
    try {
      while (publishReplies.tryRead(publishReply)) {
        takePublishReply();
      }
    } catch (ProtocolException e) {
      end("answer to a publish: " + e.getMessage());
    } finally {
      publishReplyLock.unlock();
    }
  }

  @SuppressWarnings("MustBeClosedChecker") // freed when the session is unreachable
  private void takePublishReply() {
    if (publishReplyData == null) {
      publishReplyData = Arena.ofAuto().allocate(PUBLISH_REPLY_BYTES, Long.BYTES);
    }
    int length = publishReplyBytes.take(publishReply, publishReplyData);
    EngineOperation operation = operations.get(GrantWord.slotOf(publishReply.requestId));
    if (operation == null || operation.operationId() != publishReply.requestId) {
      return;
    }
    Status status = Status.of(publishReply.status);
    byte[] results = null;
    if (length >= PublishReply.byteSize(0)) {
      int blocks = PublishReply.blocks(publishReplyData, 0);
      if (blocks >= 0 && PublishReply.byteSize(blocks) == length) {
        results = new byte[blocks];
        for (int i = 0; i < blocks; i++) {
          results[i] = (byte) PublishReply.result(publishReplyData, 0, i);
        }
      }
    }
    operation.answered(status, results);
  }
}
