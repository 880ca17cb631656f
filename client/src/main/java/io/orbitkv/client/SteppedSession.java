package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Opcode;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The engine's side of one session without threads, sleeps and system calls: the caller makes every
 * step and tells the time. It is the state machine of {@link OrbitKvClient}, for simulators, which
 * decide what happens next. Belongs to one thread.
 */
public final class SteppedSession {
  private static final WakeUps NOBODY_SLEEPS =
      new WakeUps() {
        @Override
        public void awaitRestore(int timeoutMs) {
          throw new IllegalStateException("a stepped session never sleeps");
        }

        @Override
        public void kickAgents() {}
      };

  private final EngineSession session;
  private final QueryCalls calls;
  private int registrationId;
  private int registrationGeneration;
  private int hashBytes;
  private SteppedMemory memory;
  private MemorySegment[] arenas;
  private CopyTools.Pool tools;

  /**
   * A session on checked memory.
   *
   * @param channel region of {@link ChannelDescriptor}
   * @param table the engine's view of the grant memory
   * @param epoch low half of the Manager epoch
   * @param managerWake called when the Manager is to be woken
   */
  public SteppedSession(MemorySegment channel, GrantTable table, long epoch, Runnable managerWake) {
    session = new EngineSession(channel, table, epoch, managerWake);
    calls = new QueryCalls(session, NOBODY_SLEEPS, 0);
  }

  /** Takes note of a complete registration, which later operations use. */
  public void registered(
      int id, int generation, int hashLength, SteppedMemory engine, MemorySegment[] pool) {
    registrationId = id;
    registrationGeneration = generation;
    hashBytes = hashLength;
    memory = engine;
    arenas = pool.clone();
    tools = new CopyTools.Pool(pool);
  }

  /** The session's socket has ended, or the engine ends it. */
  public void end(String reason) {
    session.end(reason);
  }

  /** True once the session is over for the engine. */
  public boolean isOver() {
    return session.isOver();
  }

  /**
   * Begins a restore of all blocks of a lease; nothing is submitted before its first steps.
   *
   * @param pages target pages, claimed by this
   * @throws OrbitKvException when a page is target of another restore
   */
  public SteppedOperation restore(Lease lease, int[] pages, Fence fence, long claimBoundNs) {
    memory.claims[0].claim(pages);
    RestoreItem item = RestoreItem.of(lease, pages);
    return new SteppedOperation(
        new RestoreOperation(
            session,
            new RestoreSpan(registrationId, registrationGeneration, List.of(item)),
            fence,
            claimBoundNs,
            target(pages),
            arenas,
            tools,
            memory.claims,
            true));
  }

  /**
   * Begins a publish; nothing is submitted before its first steps.
   *
   * @throws OrbitKvException when a page is target of a restore
   * @throws SaveNotSubmittedException when the budget is used up
   */
  public SteppedOperation publish(PublishItem item, Fence fence, long claimBoundNs) {
    memory.claims[0].requireUnclaimed(item.pages());
    long bytes = SaveBudget.bytes(item.pages().length, hashBytes, 1);
    return new SteppedOperation(
        new PublishOperation(
            session,
            new PublishSpan(registrationId, registrationGeneration, hashBytes, List.of(item)),
            memory.budget.charge(bytes, 1),
            fence,
            claimBoundNs,
            target(item.pages()),
            arenas,
            tools));
  }

  private Target target(int[] pages) {
    Target.Builder target = new Target.Builder(memory.groups, pages.length);
    target.add(0, pages);
    return target.build();
  }

  /** Submits the command of an operation once more, whatever its record says; false when full. */
  public boolean repeat(SteppedOperation stepped) {
    EngineOperation operation = stepped.operation;
    long id = operation.operationId();
    return session.trySubmit(operation.ring(), operation.opcode(), id, id, 0, operation.span());
  }

  /** Submits a lookup; null when the session is over, its ring is full or too many wait. */
  public SteppedLookup lookup(LookupRequestSpec spec) {
    if (session.isOver() || calls.waiting() == QueryCalls.MAX_CALLS) {
      return null;
    }
    QueryCalls.Call call = calls.take().lookup(spec);
    if (!calls.trySubmit(call, Opcode.LOOKUP, 0, 0, call)) {
      calls.giveBack(call);
      return null;
    }
    return new SteppedLookup(calls, call, spec.hashes().size(), session.epoch());
  }

  /** Gives a lease back without waiting for the answer. */
  public void release(Lease lease) {
    session.releaseQuietly(lease.id());
  }

  /** Voids the leases of a query up to a revision, without waiting for the answer. */
  public void cancelQuery(long queryId, int revision) {
    session.trySubmit(
        ChannelDescriptor.QUERY_REQUESTS,
        Opcode.CANCEL_QUERY,
        QueryCalls.NO_CALL,
        queryId,
        revision,
        null);
  }

  /** True when answers of any kind wait. */
  public boolean hasReplies() {
    return calls.hasReplies() || session.hasPublishReplies();
  }

  /** Hands the answers that wait to lookups and operations. */
  public void takeReplies() {
    calls.readReplies();
    if (session.hasPublishReplies()) {
      session.takePublishReplies();
    }
  }
}
