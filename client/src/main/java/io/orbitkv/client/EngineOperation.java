package io.orbitkv.client;

import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;

/**
 * Engine side of one Restore or Publish: a state machine that moves its grant record. {@link #step}
 * makes at most one access to the record, with the private work that belongs to it, so every
 * interleaving with the Manager can be driven step by step.
 *
 * <p>One driver at a time steps it, between {@link #tryDrive} and {@link #endDrive}; any thread may
 * cancel it or ask how it stands.
 *
 * <p>Moves of the engine, all of them compare-and-set on state, part and generation:
 *
 * <pre>
 * reserve   Free, Acknowledged -> Reserved      submit follows
 * cancel    Reserved -> Acknowledged            never begun
 *           Preparing -> CancelRequested        Active is out of reach
 *           Granted -> Active -> Drained        none begun
 *           PartDrained -> Drained
 * worker    Granted -> Active                   fence done; then the plan is read and copied
 *           Active -> PartDrained, Drained      every access has ended
 * settle    Reaped -> Acknowledged              outcome read before
 * </pre>
 *
 * The end of the session, and an unclaimed command at its time bound, cancel by the same moves.
 */
abstract sealed class EngineOperation permits PublishOperation, RestoreOperation {
  private static final System.Logger LOGGER = System.getLogger(EngineOperation.class.getName());
  private static final VarHandle DRIVER;

  static {
    try {
      DRIVER = MethodHandles.lookup().findVarHandle(EngineOperation.class, "driver", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** What the next step does. */
  private enum Phase {
    RESERVE,
    SUBMIT,
    WATCH,
    TRY,
    READ,
    COPY,
    DRAIN,
    SETTLE,
    END
  }

  private final EngineSession session;
  final GrantTable table;
  private final int kind;
  private final Fence fence;
  private final long claimBoundNs;
  final Target target;
  final MemorySegment[] arenas;
  private final CopyTools.Pool toolsPool;

  private Phase phase = Phase.RESERVE;
  private int slot = -1;
  private long generation;
  private volatile long submittedNs;
  private long activeWord;
  private Plan plan;
  private CopyWork work;

  /** The copy while other threads may help with it; null otherwise. */
  private volatile CopyWork shared;

  private boolean callsHelpers;
  private long copyBeganNs;
  private volatile boolean submitted;
  private boolean drained;
  private int covered;
  private boolean broken;

  /** Result of the copy so far; what the engine writes to the record. */
  private Status copyStatus = Status.OK;

  private String copyMessage = "";
  private int entriesDone;
  long copyNs;
  private long bytesCopied;

  private volatile int driver;
  private volatile boolean cancelled;
  private volatile Status cancelStatus = Status.CANCELLED;
  private volatile String cancelMessage = "cancelled by the caller";
  private volatile long operationId = -1;
  private volatile boolean awaitsFence;
  private volatile boolean pagesFree;
  private volatile boolean done;
  private volatile boolean settled;
  private volatile boolean neverBegun;
  private volatile int attendants;

  EngineOperation(
      EngineSession session,
      int kind,
      Fence fence,
      long claimBoundNs,
      Target target,
      MemorySegment[] arenas,
      CopyTools.Pool toolsPool) {
    this.session = session;
    this.table = session.table();
    this.kind = kind;
    this.fence = fence;
    this.claimBoundNs = claimBoundNs;
    this.target = target;
    this.arenas = arenas;
    this.toolsPool = toolsPool;
  }

  // What the two kinds do differently.

  /** Ring of the command. */
  abstract int ring();

  /** Code of the command. */
  abstract int opcode();

  /** Writes the command's data. */
  abstract SpanWriter span();

  /** Copies one part. */
  abstract CopyWork newWork(Plan plan, CopyTools tools);

  /** Takes note of a share that was copied; by whoever copied it. */
  abstract void progressed(CopyWork work, boolean lastPart);

  /** Takes note of a copy that ended well or not, before Drained. */
  abstract void copied(CopyWork work);

  /** Ends the operation without a word of the Manager. */
  abstract void end(Status status, String message);

  /** Ends the operation with what the Manager wrote. */
  abstract void endByRecord(Status status, String message);

  /** True when the outcome can be read now, or no longer has to be waited for. */
  abstract boolean outcomeComplete(long nowNs);

  /** Takes an answer from a reply ring: a hint, except that it may refuse a command for good. */
  abstract void answered(Status status, byte[] results);

  /** The pages are the caller's again. */
  abstract void releasePages();

  /** The Manager has not claimed the command and never will. */
  abstract void neverClaimed();

  /** No step is left; called once. */
  abstract void onSettled();

  // For all threads.

  final long operationId() {
    return operationId;
  }

  final boolean isDone() {
    return done;
  }

  final boolean pagesFree() {
    return pagesFree;
  }

  /** True when no step is left. */
  final boolean isSettled() {
    return settled;
  }

  /** True once its command was submitted. */
  final boolean isSubmitted() {
    return submitted;
  }

  /** True while memory of the pool may be touched: Active, as the driver knows it. */
  final boolean mayTouchPool() {
    return phase == Phase.READ || phase == Phase.COPY || phase == Phase.DRAIN;
  }

  /** Plan of the part that is being copied; null while none is. */
  final Plan copying() {
    return work == null ? null : plan;
  }

  /** True once all was copied and drained, every part whole. */
  final boolean hasDrainedWhole() {
    return drained && copyStatus == Status.OK;
  }

  /** When its command was submitted, as the driver's clock says. */
  final long submittedNs() {
    return submittedNs;
  }

  /** True when it is proven that the Manager has not claimed the command and never will. */
  final boolean isNeverBegun() {
    return neverBegun;
  }

  /** True while only the fence is missing, which nobody announces. */
  final boolean awaitsFence() {
    return awaitsFence;
  }

  /** Asks for the end; the next steps see to it. */
  final void cancel(Status status, String message) {
    synchronized (this) {
      if (cancelled) {
        return;
      }
      cancelStatus = status;
      cancelMessage = message;
      cancelled = true;
    }
  }

  /** Takes the right to step; false when another thread has it. */
  final boolean tryDrive() {
    return driver == 0 && DRIVER.compareAndSet(this, 0, 1);
  }

  final void endDrive() {
    driver = 0;
  }

  /** True while {@link #help} would find a share. */
  final boolean hasShares() {
    CopyWork offered = shared;
    return offered != null && offered.hasShares();
  }

  /** True while its copy ends as soon as all helpers have left. */
  final boolean waitsForHelpers() {
    CopyWork offered = shared;
    return offered != null && offered.isClosed();
  }

  /** Copies one share of a large copy that another thread drives; false when there was none. */
  final boolean help() {
    CopyWork offered = shared;
    return offered != null && offered.help(toolsPool, this);
  }

  /**
   * Takes note of a share; for the driver, and for a helper inside: while it is, the part goes on.
   */
  final void shareCopied(CopyWork copy) {
    progressed(copy, isLastPart());
  }

  /** A waiting caller steps the operation itself for now. */
  final synchronized void attend(boolean begins) {
    attendants += begins ? 1 : -1;
  }

  /** Blocks that were asked for. */
  final int blocks() {
    return target.size();
  }

  final boolean isAttended() {
    return attendants > 0;
  }

  /** Waits until the condition holds, at most the given time. */
  final synchronized void awaitUntil(BooleanSupplier condition, long timeoutNs)
      throws InterruptedException {
    long began = System.nanoTime();
    long left = timeoutNs;
    while (!condition.getAsBoolean() && left > 0) {
      wait(left / 1_000_000, (int) (left % 1_000_000));
      left = timeoutNs - (System.nanoTime() - began);
    }
  }

  final synchronized void announce() {
    notifyAll();
  }

  // For the driver.

  /**
   * Makes one step. Throws nothing: a step that fails, whatever the reason, ends the operation.
   *
   * @return true when something moved, so that another step may move more
   */
  final boolean step(long nowNs) {
    try {
      return tryStep(nowNs);
    } catch (Throwable t) { // nobody else would end the operation
      stepFailed(t);
      return false;
    }
  }

  /** True once for each copy with which other threads should help. */
  final boolean takeCallForHelp() {
    boolean result = callsHelpers;
    callsHelpers = false;
    return result;
  }

  /** The next steps stop the operation by the moves; when these fail too it ends without them. */
  private void stepFailed(Throwable failure) {
    if (work != null && !work.close()) {
      failCopy("step failed: " + failure);
      return; // helpers are still at it
    }
    boolean again = broken;
    broken = true;
    Status status = session.isOver() ? Status.SESSION_ENDED : Status.INTERNAL;
    String message = "step failed: " + failure;
    if (status == Status.INTERNAL) {
      LOGGER.log(System.Logger.Level.ERROR, "operation=" + operationId + ": " + message, failure);
    }
    cancel(status, message);
    if (phase == Phase.RESERVE) {
      fail(status, message);
    } else if (again) {
      finish(false);
      complete(status, message); // no access is under way between steps
    } else if (phase == Phase.READ || phase == Phase.COPY) {
      failCopy(message);
      shared = null;
      work = null;
      phase = Phase.DRAIN;
    } else if (phase == Phase.SUBMIT) {
      phase = Phase.WATCH;
    }
  }

  private boolean tryStep(long nowNs) {
    return switch (phase) {
      case RESERVE -> reserve();
      case SUBMIT -> submit(nowNs);
      case WATCH -> watch(nowNs);
      case TRY -> tryActive();
      case READ -> readPlan(nowNs);
      case COPY -> copy();
      case DRAIN -> drain();
      case SETTLE -> settle(nowNs);
      case END -> false;
    };
  }

  private boolean reserve() {
    slot = session.takeSlot();
    if (slot < 0) {
      fail(Status.LIMIT, "operations of the session=" + GrantTable.RECORDS + " are all in use");
      return true;
    }
    long word = table.tryReserve(slot, kind);
    if (word == -1) {
      session.end("grant record=" + slot + " was moved against the rules");
      fail(Status.SESSION_ENDED, session.overReason());
      return true;
    }
    generation = GrantWord.generation(word);
    operationId = GrantWord.operationId(slot, generation);
    session.add(slot, this);
    phase = Phase.SUBMIT;
    return true;
  }

  private boolean submit(long nowNs) {
    if (session.isOver() || cancelled) {
      phase = Phase.WATCH;
      return true;
    }
    pausePoint("reserved");
    submittedNs = nowNs;
    submitted = session.trySubmit(ring(), opcode(), operationId, operationId, 0, span());
    if (!submitted) {
      cancel(Status.LIMIT, RequestRing.full(ring()));
    }
    phase = Phase.WATCH;
    return true;
  }

  private boolean watch(long nowNs) {
    long word = table.wordAcquire(slot);
    GrantState state = GrantWord.state(word);
    if (GrantWord.generation(word) != generation || state == null) {
      return watchForeign();
    }
    return switch (state) {
      case RESERVED -> watchReserved(word, nowNs);
      case PREPARING -> mustStop() && stop(word, GrantState.CANCEL_REQUESTED);
      case GRANTED -> watchGranted(word);
      case PART_DRAINED -> mustStop() && stopBetweenParts(word);
      case DRAINED -> watchDrained();
      case REVOKED -> watchRevoked();
      case REAPED -> watchReaped();
      case CANCEL_REQUESTED -> settleWithSession();
      case FREE, ACTIVE, ACKNOWLEDGED -> watchForeign();
    };
  }

  /** True when the caller, or the end of the session, asks for the end. */
  private boolean mustStop() {
    if (!cancelled && session.isOver()) {
      cancel(Status.SESSION_ENDED, "session is over: " + session.overReason());
    }
    return cancelled;
  }

  private boolean watchReserved(long word, long nowNs) {
    if (!mustStop() && submitted && nowNs - submittedNs > claimBoundNs) {
      cancel(Status.CANCELLED, "not claimed within ms=" + claimBoundNs / 1_000_000);
    }
    if (!cancelled || !table.tryEngineMove(slot, word, GrantState.ACKNOWLEDGED)) {
      return false;
    }
    neverBegun = true;
    if (submitted) {
      neverClaimed();
    }
    complete(cancelStatus, cancelMessage);
    finish(true);
    return true;
  }

  private boolean stop(long word, GrantState next) {
    if (!table.tryEngineMove(slot, word, next)) {
      return false;
    }
    complete(cancelStatus, cancelMessage);
    return true;
  }

  private boolean watchGranted(long word) {
    if (mustStop()) {
      if (!table.tryEngineMove(slot, word, GrantState.ACTIVE)) {
        return false;
      }
      activeWord = GrantWord.withState(word, GrantState.ACTIVE);
      copyStatus = Status.CANCELLED;
      copyMessage = cancelMessage;
      phase = Phase.DRAIN;
      return true;
    }
    boolean ready = fenceDone();
    awaitsFence = !ready;
    if (ready) {
      activeWord = GrantWord.withState(word, GrantState.ACTIVE);
      phase = Phase.TRY;
    }
    return ready || cancelled;
  }

  private boolean fenceDone() {
    try {
      return fence.isDone();
    } catch (Throwable t) {
      cancel(Status.INVALID, "fence failed: " + t);
      return false;
    }
  }

  private boolean stopBetweenParts(long word) {
    table.setEngineResult(slot, Status.CANCELLED, entriesDone, copyNs, bytesCopied);
    if (!table.tryEngineMove(slot, word, GrantState.DRAINED)) {
      return false;
    }
    drained = true;
    table.markDirty(slot);
    session.wakeManager();
    complete(cancelStatus, cancelMessage);
    return true;
  }

  private boolean watchDrained() {
    if (!drained) {
      return watchForeign();
    }
    if (!done && session.isOver()) {
      complete(
          Status.SESSION_ENDED,
          "outcome is unknown: all was copied, but the session is over: " + session.overReason());
    }
    return settleWithSession();
  }

  private boolean watchRevoked() {
    if (!done) {
      Status status = table.status(slot);
      complete(
          status == Status.OK ? Status.STOPPING : status,
          message(table.error(slot), "the Manager took the grant back"));
      return true;
    }
    return settleWithSession();
  }

  private boolean watchReaped() {
    freePages();
    phase = Phase.SETTLE;
    return true;
  }

  /** The record is not this operation's: nothing moves. It never became Active, or has drained. */
  private boolean watchForeign() {
    if (!mustStop()) {
      return false;
    }
    complete(Status.INTERNAL, "grant record=" + slot + " was moved against the rules");
    finish(false);
    return true;
  }

  /** With the session the Manager's further moves have no meaning for a caller that was told. */
  private boolean settleWithSession() {
    if (done && session.isOver()) {
      finish(false);
      return true;
    }
    return false;
  }

  private boolean tryActive() {
    awaitsFence = false;
    pausePoint("granted");
    long granted = GrantWord.withState(activeWord, GrantState.GRANTED);
    boolean won = table.tryEngineMove(slot, granted, GrantState.ACTIVE);
    phase = won ? Phase.READ : Phase.WATCH;
    return true;
  }

  private boolean readPlan(long nowNs) {
    pausePoint("active");
    plan = null;
    if (mustStop()) {
      copyStatus = Status.CANCELLED;
      copyMessage = cancelMessage;
      phase = Phase.DRAIN;
      return true;
    }
    try {
      boolean everyBlock = kind == GrantTable.RESTORE;
      int part = GrantWord.part(activeWord);
      plan = Plan.read(table, slot, target, arenas, part, covered, everyBlock);
      copyBeganNs = nowNs;
      work = newWork(plan, toolsPool.take());
      phase = Phase.COPY;
    } catch (ProtocolException e) {
      failCopy(e.getMessage());
      phase = Phase.DRAIN;
    }
    return true;
  }

  private boolean copy() {
    if (shared == null && work.wantsHelp()) {
      shared = work;
      callsHelpers = true;
      return true;
    }
    return (!work.isClosed() && copyMore()) || endCopy();
  }

  /** Copies a share; false when nothing is left to claim. */
  private boolean copyMore() {
    if (cancelled && cancelStatus != Status.SESSION_ENDED) {
      copyStatus = Status.CANCELLED;
      copyMessage = cancelMessage;
      return false;
    }
    try {
      boolean more = work.step();
      shareCopied(work);
      if (more) {
        pausePoint("copying");
      }
      if (more && work.endsSoon()) {
        session.wakeManager(); // awake by the time it has the drained record to look at
      }
      return more;
    } catch (Throwable t) { // memory was freed, or its pages failed
      failCopy("copy failed: " + t);
      return false;
    }
  }

  /** Ends the copy once no helper is at it; false until then. */
  private boolean endCopy() {
    if (!work.close()) {
      return false;
    }
    if (work.failure() != null) {
      failCopy("copy failed: " + work.failure());
    }
    shareCopied(work);
    copyNs += System.nanoTime() - copyBeganNs;
    bytesCopied += work.bytes();
    entriesDone += work.entriesDone();
    copied(work);
    toolsPool.giveBack(work.tools);
    shared = null;
    work = null;
    phase = Phase.DRAIN;
    return true;
  }

  final void pausePoint(String name) {
    PausePoints.reached(kind == GrantTable.PUBLISH, name);
  }

  private boolean isLastPart() {
    return GrantWord.part(activeWord) >= plan.parts - 1;
  }

  private boolean drain() {
    pausePoint("copied");
    table.setEngineResult(slot, copyStatus, entriesDone, copyNs, bytesCopied);
    boolean more = copyStatus == Status.OK && !isLastPart();
    if (plan != null && plan.size > 0) {
      covered = plan.block[plan.size - 1] + 1;
    }
    boolean moved =
        table.tryEngineMove(slot, activeWord, more ? GrantState.PART_DRAINED : GrantState.DRAINED);
    if (!moved) { // only another process that breaks the rules moves an Active record
      session.end("grant record=" + slot + " was moved while Active");
      complete(Status.INTERNAL, "grant record=" + slot + " was moved while Active");
      finish(false);
      return true;
    }
    phase = Phase.WATCH;
    drained = !more;
    if (more) {
      pausePoint("partDrained");
    }
    table.markDirty(slot);
    session.wakeManager();
    if (!more) {
      pausePoint("drained");
      afterDrained();
    }
    return true;
  }

  private void afterDrained() {
    freePages();
    boolean cancelWon = plan == null && copyStatus == Status.CANCELLED;
    if (kind == GrantTable.RESTORE || cancelWon) {
      complete(cancelWon ? cancelStatus : copyStatus, copyMessage);
    }
  }

  private boolean settle(long nowNs) {
    if (!done) {
      if (!outcomeComplete(nowNs) && !session.isOver()) {
        return false;
      }
      Status status = table.status(slot);
      String message = table.error(slot);
      if (copyStatus != Status.OK) {
        endByRecord(copyStatus, message(copyMessage, message));
      } else {
        endByRecord(status, message);
      }
      markDone();
    }
    long reaped = table.wordAcquire(slot);
    boolean ours =
        GrantWord.generation(reaped) == generation
            && GrantWord.state(reaped) == GrantState.REAPED
            && table.tryEngineMove(slot, reaped, GrantState.ACKNOWLEDGED);
    finish(ours);
    return true;
  }

  /** What a refused or failed copy tells the Manager and the caller. */
  final void failCopy(String message) {
    copyStatus = Status.COPY_FAILED;
    copyMessage = message;
  }

  private static String message(String first, String otherwise) {
    return first.isEmpty() ? otherwise : first;
  }

  private void fail(Status status, String message) {
    neverBegun = true;
    complete(status, message);
    phase = Phase.END;
    onSettled();
    settled = true;
  }

  private void complete(Status status, String message) {
    freePages();
    if (!done) {
      end(status, message);
      markDone();
    }
  }

  private void freePages() {
    if (!pagesFree) {
      releasePages();
      pagesFree = true;
    }
  }

  private void markDone() {
    awaitsFence = false;
    done = true;
    announce();
  }

  private void finish(boolean slotIsFree) {
    phase = Phase.END;
    onSettled(); // before the session counts as idle
    session.remove(slot);
    if (slotIsFree) {
      session.giveBackSlot(slot);
    }
    settled = true;
    announce();
  }
}
