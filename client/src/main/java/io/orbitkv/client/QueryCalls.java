package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Commands whose answer comes on the query ring: ping, lookup, release, cancel. Thread-safe; in
 * steady state a call allocates nothing.
 *
 * <p>Whoever holds the baton reads the reply ring for all and may sleep on restore-wake; the others
 * spin and then park until their answer is handed to them or the baton is free.
 */
final class QueryCalls {
  /** Calls that may wait at once. */
  static final int MAX_CALLS = 128;

  /** Request id of a command whose answer nobody waits for. */
  static final long NO_CALL = 1L << 62;

  private static final long MAX_PARK_NS = 10_000_000;
  private static final int MAX_SLEEP_MS = 100;
  private static final long IDLE_LOOK_NS = 100_000;
  private static final int FIRST_DATA_BYTES = 4096;

  /**
   * How much longer a waiter spins for a byte of the command's data: the Manager takes up to 100 ns
   * for a hash of 32 bytes, and a waiter that fell asleep meanwhile is woken for more than that.
   */
  private static final long SPIN_NS_A_BYTE = 4;

  /** Most that a waiter spins more. */
  private static final long MAX_MORE_SPIN_NS = 500_000;

  /** Looks at the ring between two looks at the clock. */
  private static final int SPINS_A_LOOK = 16;

  /** How often a spinning waiter lets a Manager run that was woken on its processor. */
  static final long YIELD_NS = 10_000;

  /** State bits below the request id in {@link Call#word}. */
  private static final long WAITING = 1;

  private static final long FILLING = 2;
  private static final long DONE = 3;

  private final EngineSession session;
  private final WakeUps wakeUps;
  private final long leastSpinNs;

  private final Call[] calls = new Call[MAX_CALLS];

  /** Bit of each call that is taken. */
  private final AtomicLongArray taken = new AtomicLongArray(MAX_CALLS / Long.SIZE);

  private final ReentrantLock baton = new ReentrantLock();
  private final AtomicInteger parked = new AtomicInteger();
  private final CommandRing.Consumer replies;
  private final ByteRing.Consumer replyBytes;
  private final Command reply = new Command();
  private MemorySegment unwanted = MemorySegment.NULL;

  QueryCalls(EngineSession session, WakeUps wakeUps, long spinNs) {
    this.session = session;
    this.wakeUps = wakeUps;
    this.leastSpinNs = spinNs;
    this.replies = new CommandRing.Consumer(session.channel(), ChannelDescriptor.QUERY_REPLIES);
    this.replyBytes = new ByteRing.Consumer(session.channel(), ChannelDescriptor.QUERY_REPLIES);
    for (int i = 0; i < MAX_CALLS; i++) {
      calls[i] = new Call(i);
    }
  }

  /** One call and its answer; belongs to its caller from take to give back. */
  static final class Call implements SpanWriter {
    private final int index;
    private final AtomicLong word = new AtomicLong();
    private volatile Thread waiter;
    private long requestId;
    private long sequence;

    private byte[] namespace;
    private List<byte[]> namespaces;
    private BlockHashes hashes;
    private int mode;
    private long queryId;
    private int revision;
    private int maxLeaseAgeMs;
    private long groupMask;

    /** Code of the answer's {@link Status}. */
    int status;

    /** Data of the answer, from offset 0. */
    MemorySegment data = MemorySegment.NULL;

    int dataLength;

    private Call(int index) {
      this.index = index;
    }

    /** A lookup of the prefix of group 0 in one namespace. */
    Call prefix(byte[] namespace, BlockHashes hashes) {
      this.namespace = namespace;
      this.namespaces = List.of();
      this.hashes = hashes;
      this.mode = LookupRequest.PREFIX;
      this.queryId = 0;
      this.revision = 0;
      this.maxLeaseAgeMs = 0;
      this.groupMask = 1;
      return this;
    }

    /** Any lookup. */
    Call lookup(LookupRequestSpec spec) {
      this.namespace = null;
      this.namespaces = spec.namespaces();
      this.hashes = spec.hashes();
      this.mode = spec.mode().code();
      this.queryId = spec.queryId();
      this.revision = spec.revision();
      this.maxLeaseAgeMs = spec.maxLeaseAgeMs();
      this.groupMask = spec.groupMask();
      return this;
    }

    private int namespaceCount() {
      return namespace != null ? 1 : namespaces.size();
    }

    @Override
    public int spanBytes() {
      return (int) LookupRequest.byteSize(namespaceCount(), hashes.size(), hashes.hashBytes());
    }

    @Override
    public void writeTo(MemorySegment into, long at) {
      int count = namespaceCount();
      LookupRequest.writeHeader(
          into,
          at,
          mode,
          hashes.hashBytes(),
          count,
          hashes.size(),
          queryId,
          revision,
          maxLeaseAgeMs,
          groupMask);
      for (int i = 0; i < count; i++) {
        MemorySegment.copy(
            namespace != null ? namespace : namespaces.get(i),
            0,
            into,
            ValueLayout.JAVA_BYTE,
            at + LookupRequest.namespaceAt(i),
            Protocol.NAMESPACE_BYTES);
      }
      MemorySegment bytes = hashes.bytes();
      MemorySegment.copy(bytes, 0, into, at + LookupRequest.hashesAt(count), bytes.byteSize());
    }

    boolean isDone() {
      return word.getAcquire() == state(requestId, DONE);
    }

    private void ensureCapacity(int bytes) {
      data = withCapacity(data, bytes);
    }
  }

  /** The segment, or a larger one. */
  @SuppressWarnings("MustBeClosedChecker") // freed when the session is unreachable
  private static MemorySegment withCapacity(MemorySegment data, int bytes) {
    if (data.byteSize() >= bytes) {
      return data;
    }
    long size = Math.max(FIRST_DATA_BYTES, Long.highestOneBit(Math.max(1, bytes - 1L)) * 2);
    return Arena.ofAuto().allocate(size, Long.BYTES);
  }

  private static long state(long requestId, long state) {
    return requestId << 2 | state;
  }

  /**
   * Takes a call; it must be given back.
   *
   * @throws OrbitKvException with {@link Status#LIMIT} when too many wait
   */
  Call take() {
    Call call = tryTake();
    if (call == null) {
      throw new OrbitKvException(Status.LIMIT, "queries of the session=" + MAX_CALLS + " all wait");
    }
    return call;
  }

  private Call tryTake() {
    for (int word = 0; word < taken.length(); word++) {
      for (long bits = taken.get(word); bits != -1L; bits = taken.get(word)) {
        int bit = Long.numberOfTrailingZeros(~bits);
        if (taken.compareAndSet(word, bits, bits | (1L << bit))) {
          Call call = calls[(word << 6) + bit];
          call.requestId = NO_CALL | (++call.sequence << 8) | call.index;
          return call;
        }
      }
    }
    return null;
  }

  /**
   * Gives a lease back without waiting for the answer, and reads what has come of earlier ones:
   * else they would fill the ring in the end. Nothing is sent when the session is over, the ring is
   * full or too many wait; then the end of the session or the lease's age ends the lease.
   */
  void giveBackLease(long leaseId) {
    Call call = tryTake(); // until it is given back, the session's memory stays
    if (call == null) {
      return;
    }
    try {
      if (!session.isOver()) {
        session.releaseQuietly(leaseId);
        readIfNobodyElse();
      }
    } finally {
      giveBack(call);
    }
  }

  private void readIfNobodyElse() {
    if (baton.tryLock()) {
      try {
        readReplies();
      } finally {
        baton.unlock();
      }
      passBaton();
    }
  }

  /** Calls that are taken. */
  int waiting() {
    int count = 0;
    for (int word = 0; word < taken.length(); word++) {
      count += Long.bitCount(taken.get(word));
    }
    return count;
  }

  /** The caller has read the answer, or has given up. */
  void giveBack(Call call) {
    long bit = 1L << (call.index & 63);
    taken.getAndAccumulate(call.index >> 6, bit, (bits, mine) -> bits & ~mine);
  }

  /**
   * Submits a command and waits for its answer.
   *
   * @param span its data, or null
   * @return the answer's status
   * @throws OrbitKvException when the ring is full, the session is over or the time has passed
   */
  Status call(Call call, int opcode, long scalar0, long scalar1, SpanWriter span, long timeoutNs) {
    session.requireOpen();
    if (!trySubmit(call, opcode, scalar0, scalar1, span)) {
      readIfNobodyElse(); // the Manager waits for room in the reply ring
      throw new OrbitKvException(Status.LIMIT, RequestRing.full(ChannelDescriptor.QUERY_REQUESTS));
    }
    await(call, opcode, spinNs(span), timeoutNs);
    return Status.of(call.status);
  }

  /**
   * Looks up, and reads the answer.
   *
   * @throws OrbitKvException as {@link #call}, and when the Manager refuses or answers nonsense
   */
  LookupResult lookup(LookupRequestSpec spec, long timeoutNs) {
    Call call = take();
    try {
      lookup(call.lookup(spec), timeoutNs);
      return LookupAnswer.read(call.data, session.epoch());
    } finally {
      giveBack(call);
    }
  }

  /** As {@link #lookup(LookupRequestSpec, long)}; leaves the whole answer in the call's data. */
  void lookup(Call call, long timeoutNs) {
    Status status = call(call, Opcode.LOOKUP, 0, 0, call, timeoutNs);
    if (status != Status.OK) {
      throw new OrbitKvException(status, "lookup: the Manager answers " + status);
    }
    LookupAnswer.requireWhole(call.data, call.dataLength, call.hashes.size());
  }

  /** Submits a command whose answer the call takes; false, with nothing submitted, when full. */
  boolean trySubmit(Call call, int opcode, long scalar0, long scalar1, SpanWriter span) {
    call.word.set(state(call.requestId, WAITING));
    boolean submitted =
        session.trySubmit(
            ChannelDescriptor.QUERY_REQUESTS, opcode, call.requestId, scalar0, scalar1, span);
    if (!submitted) {
      call.word.set(0);
    }
    return submitted;
  }

  private long spinNs(SpanWriter span) {
    long more = span == null ? 0 : span.spanBytes() * SPIN_NS_A_BYTE;
    return leastSpinNs + Math.min(MAX_MORE_SPIN_NS, more);
  }

  private void await(Call call, int opcode, long spinNs, long timeoutNs) {
    long began = System.nanoTime();
    long now = began;
    while (!call.isDone()) {
      if (session.isOver() && abandon(call)) {
        throw new OrbitKvException(
            Status.SESSION_ENDED, "session is over: " + session.overReason());
      }
      if (now - began >= timeoutNs && abandon(call)) {
        throw new OrbitKvTimeoutException(
            "no answer: opcode=" + opcode + ", ms=" + timeoutNs / 1_000_000);
      }
      if (baton.tryLock()) {
        try {
          readUntilDone(call, began, spinNs, timeoutNs);
        } finally {
          baton.unlock();
        }
        passBaton();
      } else if (now - began < spinNs) {
        Thread.onSpinWait();
      } else {
        park(call, Math.min(MAX_PARK_NS, timeoutNs - (now - began)));
      }
      now = System.nanoTime();
    }
  }

  /** Gives up; false when the answer has just come after all. */
  static boolean abandon(Call call) {
    if (call.word.compareAndSet(state(call.requestId, WAITING), 0)) {
      return true;
    }
    while (!call.isDone()) { // the reader is writing the answer
      Thread.onSpinWait();
    }
    return false;
  }

  @SuppressWarnings("ThreadPriorityCheck") // both may share one processor
  private void readUntilDone(Call call, long began, long spinNs, long timeoutNs) {
    long yielded = 0;
    while (true) {
      for (int spins = 0; spins < SPINS_A_LOOK && !replies.hasNext(); spins++) {
        Thread.onSpinWait();
      }
      readReplies();
      long waited = System.nanoTime() - began;
      if (call.isDone() || session.isOver() || waited >= timeoutNs) {
        return;
      }
      if (waited >= spinNs) {
        sleep((int) Math.min(MAX_SLEEP_MS, (timeoutNs - waited) / 1_000_000 + 1));
      } else if (waited - yielded > YIELD_NS) {
        Thread.yield();
        yielded = waited;
      }
    }
  }

  private void sleep(int timeoutMs) {
    MemorySegment channel = session.channel();
    SleepFlag.announce(channel, ChannelDescriptor.RESTORE_SLEEPS_OFFSET);
    try {
      if (!replies.hasNext() && !session.isOver()) {
        wakeUps.awaitRestore(timeoutMs);
      }
    } finally {
      SleepFlag.withdraw(channel, ChannelDescriptor.RESTORE_SLEEPS_OFFSET);
    }
    if (!session.isIdle()) {
      wakeUps.kickAgents(); // the signal may have meant a restore
    }
  }

  private void park(Call call, long ns) {
    call.waiter = Thread.currentThread();
    parked.incrementAndGet();
    try {
      if (!call.isDone() && baton.isLocked()) {
        LockSupport.parkNanos(this, ns);
      }
    } finally {
      parked.decrementAndGet();
      call.waiter = null;
    }
  }

  private void passBaton() {
    if (parked.get() == 0) {
      return;
    }
    for (Call call : calls) {
      Thread waiter = call.waiter;
      if (waiter != null) {
        LockSupport.unpark(waiter);
        return;
      }
    }
  }

  /** Wakes every waiter, which then looks at the session. */
  void wakeAll() {
    for (Call call : calls) {
      Thread waiter = call.waiter;
      if (waiter != null) {
        LockSupport.unpark(waiter);
      }
    }
  }

  /** Waits until no call is under way; false when one still is after the time given. */
  boolean awaitIdle(long timeoutNs) {
    long began = System.nanoTime();
    while (!isIdle()) {
      if (System.nanoTime() - began > timeoutNs) {
        return false;
      }
      wakeAll();
      Uninterruptibly.park(this, IDLE_LOOK_NS);
    }
    return true;
  }

  private boolean isIdle() {
    for (int word = 0; word < taken.length(); word++) {
      if (taken.get(word) != 0) {
        return false;
      }
    }
    return true;
  }

  /** Takes the baton for a thread that is no caller; it must be returned. */
  boolean tryTakeBaton() {
    return baton.tryLock();
  }

  void returnBaton() {
    baton.unlock();
    passBaton();
  }

  /** True when answers wait; for the holder of the baton. */
  boolean hasReplies() {
    return replies.hasNext();
  }

  /** Hands the answers that wait to their callers; for the holder of the baton. */
  void readReplies() {
    try {
      while (replies.tryRead(reply)) {
        dispatch();
      }
    } catch (ProtocolException e) {
      session.end("answer to a query: " + e.getMessage());
      wakeAll();
    }
  }

  private void dispatch() {
    long id = reply.requestId;
    if ((id & NO_CALL) == 0) {
      refuse(id);
      return;
    }
    Call call = calls[(int) id & (MAX_CALLS - 1)];
    if (id == NO_CALL || !call.word.compareAndSet(state(id, WAITING), state(id, FILLING))) {
      discard();
      return;
    }
    try {
      call.status = reply.status;
      call.ensureCapacity(Math.clamp(reply.dataLength, 0, Protocol.MAX_SPAN_BYTES));
      call.dataLength = replyBytes.take(reply, call.data);
    } catch (ProtocolException e) {
      call.status = Status.INTERNAL.code();
      call.dataLength = 0;
      throw e;
    } finally {
      call.word.setRelease(state(id, DONE));
      LockSupport.unpark(call.waiter);
    }
  }

  /** An answer to a restore says that it was refused before it was claimed. */
  private void refuse(long operationId) {
    discard();
    EngineOperation operation = session.operation(GrantWord.slotOf(operationId));
    if (operation != null && operation.operationId() == operationId) {
      operation.answered(Status.of(reply.status), null);
    }
  }

  /** Frees the data of an answer that nobody waits for; leases in it are given back. */
  private void discard() {
    if (reply.dataLength == 0) {
      return;
    }
    unwanted = withCapacity(unwanted, Math.clamp(reply.dataLength, 0, Protocol.MAX_SPAN_BYTES));
    int length = replyBytes.take(reply, unwanted);
    if (reply.opcode == Opcode.LOOKUP
        && reply.status == Status.OK.code()
        && LookupAnswer.isWhole(unwanted, length)) {
      int groups = LookupReply.groups(unwanted, 0);
      int hashes = LookupReply.hashes(unwanted, 0);
      for (int i = 0; i < LookupReply.leases(unwanted, 0); i++) {
        session.releaseQuietly(
            LookupReply.leaseId(unwanted, LookupReply.leaseAt(0, i, groups, hashes)));
      }
    }
  }
}
