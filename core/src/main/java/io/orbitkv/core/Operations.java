package io.orbitkv.core;

import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.PublishRequest;
import io.orbitkv.channel.RestoreRequest;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Restores and publishes: claims commands, takes owners, writes plans, and settles records by the
 * Manager's moves of the grant table. What a record says is believed only as far as the table of
 * moves and the core's own {@link Operation} allow.
 */
final class Operations {
  /**
   * Most bytes of metadata of one operation. The largest command needs less, since it is one span.
   */
  static final long MAX_METADATA_BYTES = 32L << 20;

  private static final int METADATA_BYTES_A_BLOCK = 2 * Integer.BYTES;
  private static final int METADATA_BYTES_A_SECTION = 3 * Integer.BYTES;

  private final BlockStore store;
  private final Leases leases;
  private final IntArrays arrays;
  private final CoreOutput output;
  private final Consumer<Operation> onSettled;
  private final int partEntries;
  private final RestoreRequest restore = new RestoreRequest();
  private final PublishRequest publish = new PublishRequest();
  private final Sealing sealing;
  private boolean stopping;
  private long claims;
  private long nowNs;

  private Status refusal;
  private String refusalText;

  int active;
  long restores;
  long restoredBytes;
  long publishes;
  long held;
  long refused;
  long failed;
  long damaged;
  long stale;

  Operations(
      CoreConfig config,
      BlockStore store,
      Leases leases,
      IntArrays arrays,
      CoreOutput output,
      Consumer<Operation> onSettled) {
    this.partEntries = config.partEntries();
    this.store = store;
    this.leases = leases;
    this.arrays = arrays;
    this.output = output;
    this.onSettled = onSettled;
    this.sealing = new Sealing(store, output);
  }

  void beginStop() {
    stopping = true;
  }

  /** Bytes of publishes that were sealed. */
  long publishedBytes() {
    return sealing.publishedBytes;
  }

  /** Grants from now on are of this time. */
  void setNow(long timeNs) {
    nowNs = timeNs;
  }

  // ---- claim ----

  /** Claims a restore command: its leases are consumed or its refusal is noted, in one step. */
  void claimRestore(
      Session session,
      Command command,
      MemorySegment data,
      int length,
      Registrations registrations) {
    restore.wrap(data, 0, length);
    Operation op = claim(session, command, false);
    if (op == null) {
      return;
    }
    try {
      op.registration =
          registrations.find(session, restore.registrationId(), restore.registrationGeneration());
      if (mayBegin(op) && restoreFits(op) && leasesFit(op)) {
        consumeLeases(op);
        begin(op);
      } else {
        refuse(op);
      }
    } catch (RuntimeException e) {
      throw quarantine(op, e);
    }
  }

  /** Claims a publish command: held blocks are left out, ranges for the others are allocated. */
  void claimPublish(
      Session session,
      Command command,
      MemorySegment data,
      int length,
      Registrations registrations) {
    publish.wrap(data, 0, length);
    Operation op = claim(session, command, true);
    if (op == null) {
      return;
    }
    try {
      op.registration =
          registrations.find(session, publish.registrationId(), publish.registrationGeneration());
      if (mayBegin(op) && publishFits(op)) {
        allocate(op, data);
        beginPublish(op);
      } else {
        refuse(op);
      }
    } catch (RuntimeException e) {
      throw quarantine(op, e);
    }
  }

  private void beginPublish(Operation op) {
    if (op.entries > 0) {
      begin(op);
      return;
    }
    refusal = op.refused > 0 ? Status.POOL_FULL : Status.OK;
    refusalText =
        op.refused > 0 ? "pool is in use: refused=" + op.refused + ", held=" + op.held : "";
    refuse(op);
  }

  /** A fault of the core while it worked on one operation, which is in quarantine. */
  private static final class OperationFault extends RuntimeException {
    private static final long serialVersionUID = 1;

    OperationFault(Operation op, RuntimeException cause) {
      super(
          "operation of record=%d, generation=%d: %s"
              .formatted(op.slot, op.generation, cause.getMessage()),
          cause);
    }
  }

  /**
   * A fault of the core itself: whatever the operation owns is in doubt, so it is kept and never
   * touched again. One that came from another operation, granted on the way, stays with that one.
   */
  private static RuntimeException quarantine(Operation op, RuntimeException fault) {
    if (fault instanceof OperationFault) {
      return fault;
    }
    if (!op.isSettled()) {
      op.phase = Operation.Phase.QUARANTINED;
    }
    return new OperationFault(op, fault);
  }

  private Operation claim(Session session, Command command, boolean isPublish) {
    int slot = GrantWord.slotOf(command.scalar0);
    long generation = GrantWord.generationOf(command.scalar0);
    Operation op = session.operations[slot];
    if (op == null) {
      op = new Operation(session, slot);
      session.operations[slot] = op;
    }
    long word = session.table.wordAcquire(slot);
    boolean fresh = op.isSettled() && generation > session.lastGeneration[slot];
    boolean reserved = word == GrantWord.of(generation, 0, GrantState.RESERVED);
    if (!fresh || !reserved || !session.table.tryManagerMove(slot, word, GrantState.PREPARING)) {
      stale++; // repeated, late or cancelled: nothing of it was begun
      return null;
    }
    session.lastGeneration[slot] = generation;
    op.generation = generation;
    op.publish = isPublish;
    op.requestId = command.requestId;
    op.registration = null;
    op.count = 0;
    op.entries = 0;
    op.held = 0;
    op.refused = 0;
    op.sectionCount = 0;
    op.part = 0;
    op.partEnd = 0;
    op.entriesSoFar = 0;
    op.wholeSoFar = true;
    op.phase = Operation.Phase.PREPARED;
    session.unsettled++;
    active++;
    return op;
  }

  private boolean deny(Status status, String text) {
    refusal = status;
    refusalText = text;
    return false;
  }

  private boolean mayBegin(Operation op) {
    Registration registration = op.registration;
    if (stopping) {
      return deny(Status.STOPPING, "Manager is stopping");
    }
    if (registration == null) {
      return deny(Status.STALE_REGISTRATION, "registration is withdrawn or of another generation");
    }
    boolean readOnly = registration.request.restoreOnly() || !op.session.mayPublish;
    if (op.publish && readOnly) {
      return deny(Status.RESTORE_ONLY, "this registration may not publish");
    }
    return true;
  }

  /** Bytes of row, page and section of an operation. */
  static long metadataBytes(int blocks, int sections) {
    return METADATA_BYTES_A_BLOCK * (long) blocks + METADATA_BYTES_A_SECTION * (long) sections;
  }

  private boolean metadataFits(Operation op, int blocks, int sections) {
    long bytes = metadataBytes(blocks, sections);
    if (op.session.metadataBytes + bytes > Session.MAX_METADATA_BYTES) {
      return deny(
          Status.LIMIT,
          "metadata bytes="
              + (op.session.metadataBytes + bytes)
              + ", limit="
              + Session.MAX_METADATA_BYTES);
    }
    op.metadataBytes = bytes;
    op.session.metadataBytes += bytes;
    return true;
  }

  private boolean restoreFits(Operation op) {
    if (!metadataFits(op, restore.pages(), restore.leases())) {
      return false;
    }
    op.count = restore.pages();
    return true;
  }

  private boolean leasesFit(Operation op) {
    claims++;
    restore.rewind();
    for (int i = 0; i < restore.leases(); i++) {
      restore.nextSection();
      Lease lease = leases.find(restore.leaseId());
      if (lease == null || lease.instance != op.session.instance || lease.claim == claims) {
        return deny(Status.LEASE_ENDED, "lease=" + restore.leaseId() + " has ended");
      }
      lease.claim = claims; // a command that names a lease twice would use it twice
      if (!lease.space.isSameGroup(op.registration.space(lease.space.group))) {
        return deny(
            Status.NAMESPACE_MISMATCH, "lease is of a namespace or group not registered here");
      }
      if (restore.skip() + restore.count() > lease.count) {
        return deny(
            Status.INVALID,
            "lease: blocks="
                + lease.count
                + ", skip="
                + restore.skip()
                + ", count="
                + restore.count());
      }
      if (!pagesFit(op.registration.pages[lease.space.group])) {
        return false;
      }
    }
    return true;
  }

  private boolean pagesFit(int pages) {
    for (int i = 0; i < restore.count(); i++) {
      if (!pageFits(restore.page(i), pages)) {
        return false;
      }
    }
    return true;
  }

  private boolean pageFits(int page, int pages) {
    return (page >= 0 && page < pages)
        || deny(
            Status.INVALID,
            "page=" + Integer.toUnsignedString(page) + ", registered pages=" + pages);
  }

  private void consumeLeases(Operation op) {
    op.rows = arrays.take(op.count);
    op.pages = arrays.take(op.count);
    int filled = 0;
    restore.rewind();
    for (int i = 0; i < restore.leases(); i++) {
      restore.nextSection();
      Lease lease = leases.find(restore.leaseId());
      int blocks = lease.count;
      int first = restore.skip();
      int last = first + restore.count();
      int[] rows = leases.consume(lease);
      for (int block = 0; block < blocks; block++) {
        if (block >= first && block < last) {
          op.rows[filled] = rows[block];
          op.pages[filled++] = restore.page(block - first);
        } else {
          store.unpin(rows[block]);
        }
      }
      arrays.give(rows);
    }
    op.entries = filled;
  }

  private boolean publishFits(Operation op) {
    if (!metadataFits(op, publish.blocks(), publish.sections())) {
      return false;
    }
    if (publish.hashBytes() != op.registration.namespace.hashBytes) {
      return deny(
          Status.INVALID,
          "hash bytes="
              + publish.hashBytes()
              + ", namespace has="
              + op.registration.namespace.hashBytes);
    }
    publish.rewind();
    for (int s = 0; s < publish.sections(); s++) {
      publish.nextSection();
      if (op.registration.space(publish.group()) == null) {
        return deny(
            Status.NAMESPACE_MISMATCH, "group=" + publish.group() + " is not registered here");
      }
      for (int i = 0; i < publish.count(); i++) {
        if (!pageFits(publish.page(i), op.registration.pages[publish.group()])) {
          return false;
        }
      }
    }
    return true;
  }

  private void allocate(Operation op, MemorySegment data) {
    op.count = publish.blocks();
    op.rows = arrays.take(op.count);
    op.pages = arrays.take(op.count);
    Arrays.fill(op.rows, 0, op.count, Operation.REFUSED);
    op.sections = arrays.take(3 * publish.sections());
    op.sectionCount = publish.sections();
    store.nextPublish();
    int block = 0;
    publish.rewind();
    for (int s = 0; s < publish.sections(); s++) {
      publish.nextSection();
      block = allocateSection(op, s, block, data);
    }
    held += op.held;
    refused += op.refused;
  }

  private int allocateSection(Operation op, int section, int firstBlock, MemorySegment data) {
    Namespaces.Space space = op.registration.space(publish.group());
    int hashBytes = publish.hashBytes();
    int parent = publish.hasParent() ? store.find(space, data, publish.parent(), hashBytes) : -1;
    op.sections[3 * section] = firstBlock;
    op.sections[3 * section + 1] = publish.group();
    op.sections[3 * section + 2] = parent;
    if (parent >= 0) {
      store.touchChain(parent);
      store.pin(parent); // what the new blocks continue must not give way to them
    }
    store.beginSection(parent);
    try {
      allocateBlocks(op, space, firstBlock, data);
    } finally {
      store.endSection();
    }
    return firstBlock + publish.count();
  }

  private void allocateBlocks(
      Operation op, Namespaces.Space space, int firstBlock, MemorySegment data) {
    int hashBytes = publish.hashBytes();
    boolean full = false;
    for (int i = 0; i < publish.count(); i++) {
      long hash = publish.hash(i);
      int block = firstBlock + i;
      op.pages[block] = publish.page(i);
      int resident = store.find(space, data, hash, hashBytes);
      if (resident >= 0) {
        op.rows[block] = Operation.held(resident);
        op.held++;
        store.pin(resident);
        store.touchOne(resident);
        store.noteReuse(resident);
        continue;
      }
      int row = full ? -1 : store.allocate(space, data, hash, hashBytes);
      full = row < 0; // what follows in this chain is of no use without this block
      op.rows[block] = row < 0 ? Operation.REFUSED : row;
      if (row < 0) {
        op.refused++;
        store.noteRefused(space, data, hash, hashBytes);
      } else {
        op.entries++;
      }
    }
  }

  private void begin(Operation op) {
    op.begun = true;
    op.registration.unsettled++;
    op.parts = (op.entries + partEntries - 1) / partEntries;
    grantInTurn(op);
  }

  /** Grants a part when nobody waits for the bank and it has room, else at its turn. */
  private void grantInTurn(Operation op) {
    if (!op.session.waitingForBank.isEmpty() || !tryGrant(op)) {
      op.session.waitingForBank.add(op);
    }
  }

  /**
   * Ends an operation that owns nothing: Preparing to Reaped with the reason, whoever moves first.
   */
  private void refuse(Operation op) {
    if (refusal != Status.OK) {
      failed++;
    }
    Status status = refusal;
    String text = refusalText;
    refusal = Status.OK;
    refusalText = "";
    Session session = op.session;
    session.table.setOutcome(op.slot, status, 0, op.held, op.refused, text);
    sealing.sendReply(op, false);
    reapPrepared(op);
    settle(op);
    wake(op);
  }

  private static long word(Operation op, GrantState state) {
    return GrantWord.of(op.generation, op.part, state);
  }

  // ---- grant ----

  /** Writes the plan of the next part and grants it; false when the bank has no room now. */
  private boolean tryGrant(Operation op) {
    Session session = op.session;
    int entries = Math.min(partEntries, op.entries - op.entriesSoFar);
    int offset = session.bank.take(entries);
    if (offset < 0) {
      return false;
    }
    op.planOffset = offset;
    op.partEntries = entries;
    int first = op.partEnd;
    int end = writePlan(op, first, entries);
    session.table.setPlan(op.slot, offset, entries, op.parts);
    boolean isFirst = op.phase == Operation.Phase.PREPARED;
    GrantState from = isFirst ? GrantState.PREPARING : GrantState.PART_DRAINED;
    int part = isFirst ? 0 : op.part + 1;
    if (session.table.tryManagerMove(op.slot, word(op, from), GrantState.GRANTED, part)) {
      op.phase = Operation.Phase.GRANTED;
      op.grantedNs = nowNs;
      session.lastGrantNs = nowNs;
      op.part = part;
      op.partFirst = first;
      op.partEnd = end;
      op.entriesSoFar += entries;
      wake(op);
      return true;
    }
    freePlan(op); // the engine was first: it gave up, and the plan was never readable
    if (isFirst) {
      endPrepared(op, Status.CANCELLED, "cancelled");
    } // else its record says Drained, and is read next
    return true;
  }

  private static void freePlan(Operation op) {
    if (op.planOffset != Operation.NO_PLAN) {
      op.session.bank.free(op.planOffset, op.partEntries);
      op.planOffset = Operation.NO_PLAN;
    }
  }

  /**
   * Writes so many entries for owned blocks from {@code first} on; returns the block after the last
   * of them.
   */
  private int writePlan(Operation op, int first, int entries) {
    MemorySegment memory = op.session.table.memory();
    long at = GrantTable.bankAt(op.planOffset);
    long end = at + (long) entries * PlanEntry.BYTES;
    int section = -1;
    int group = 0;
    int i = first;
    for (; at < end; i++) {
      while (op.publish && section + 1 < op.sectionCount && op.sections[3 * (section + 1)] <= i) {
        section++;
        group = op.sections[3 * section + 1];
      }
      int row = op.rows[i];
      if (Operation.isOwned(row)) {
        Namespaces.Space space = store.spaceOf(row);
        PlanEntry.put(
            memory,
            at,
            store.arena(row),
            op.publish ? group : space.group,
            op.pages[i],
            store.allocation(row),
            store.offset(row),
            space.blockBytes,
            op.publish ? 0 : store.crc(row));
        at += PlanEntry.BYTES;
      }
    }
    return i;
  }

  private void grantWaiting(Session session) {
    while (!session.waitingForBank.isEmpty()) {
      Operation op = session.waitingForBank.peek();
      boolean waits = op.phase == Operation.Phase.PREPARED || op.phase == Operation.Phase.BETWEEN;
      try {
        if (waits && (never(op) || !tryGrant(op))) {
          return; // one that is never granted ends when its record is read
        }
      } catch (RuntimeException e) {
        session.waitingForBank.poll();
        throw quarantine(op, e);
      }
      session.waitingForBank.poll();
    }
  }

  // ---- settle ----

  /**
   * Reads the record of an operation and makes the moves that are due; true when something was
   * done.
   */
  boolean inspect(Operation op) {
    if (op.isSettled() || op.phase == Operation.Phase.QUARANTINED) {
      return false;
    }
    try {
      return inspectRecord(op);
    } catch (ProtocolException e) {
      throw e;
    } catch (RuntimeException e) {
      throw quarantine(op, e);
    }
  }

  private boolean inspectRecord(Operation op) {
    Session session = op.session;
    long word = session.table.wordAcquire(op.slot);
    GrantState state = GrantWord.state(word);
    boolean mine = GrantWord.generation(word) == op.generation && GrantWord.part(word) == op.part;
    if (op.phase == Operation.Phase.DISTRUSTED) {
      return exitProves(op) && endUnproven(op);
    }
    if (!mine || state == null) {
      throw distrust(op, word);
    }
    return switch (state) {
      case PREPARING, CANCEL_REQUESTED -> inspectPrepared(op, word, state);
      case GRANTED ->
          granted(op, word)
              && never(op)
              && revoke(op, word, neverStatus(op), "revoked before the copy began");
      case ACTIVE -> granted(op, word) && exitProves(op) && reapActive(op, word);
      case PART_DRAINED -> partDrained(op, word);
      case DRAINED -> (isBetween(op) || granted(op, word)) && drained(op, word);
      case FREE, RESERVED, REVOKED, REAPED, ACKNOWLEDGED -> mistrust(op, word);
    };
  }

  private static boolean isBetween(Operation op) {
    return op.phase == Operation.Phase.BETWEEN;
  }

  /** A record moves as a granted one only when the core has granted it. */
  private boolean granted(Operation op, long word) {
    return op.phase == Operation.Phase.GRANTED || mistrust(op, word);
  }

  private boolean mistrust(Operation op, long word) {
    throw distrust(op, word);
  }

  /** A move outside the table: what was granted counts as Active from now on. */
  private ProtocolException distrust(Operation op, long word) {
    distrust(op);
    return new ProtocolException(
        Status.INVALID,
        "grant record: slot=%d, word=0x%x, expected generation=%d"
            .formatted(op.slot, word, op.generation));
  }

  /**
   * The session's memory is not believed any more; what is only prepared was never readable and is
   * released.
   */
  void distrust(Operation op) {
    if (op.phase == Operation.Phase.PREPARED) {
      releaseOwners(op);
      settle(op);
    } else if (op.phase == Operation.Phase.GRANTED || isBetween(op)) {
      op.phase = Operation.Phase.DISTRUSTED;
    }
  }

  private boolean never(Operation op) {
    return stopping || op.session.lost || op.registration.closing;
  }

  private static boolean exitProves(Operation op) {
    return op.session.exited && op.registration.request.exitProvesTermination();
  }

  private boolean inspectPrepared(Operation op, long word, GrantState state) {
    if (op.phase != Operation.Phase.PREPARED) {
      throw distrust(op, word);
    }
    if (state == GrantState.CANCEL_REQUESTED) {
      op.session.waitingForBank.remove(op);
      endPrepared(op, Status.CANCELLED, "cancelled");
      grantWaiting(op.session); // it may have stood before smaller ones
      return true;
    }
    if (never(op)) {
      op.session.waitingForBank.remove(op);
      endPrepared(op, neverStatus(op), "not granted");
      grantWaiting(op.session);
      return true;
    }
    return false;
  }

  /**
   * Takes note, once, that a part has drained: its checksums are taken, its plan space is free. The
   * owners stay to the end of the operation.
   */
  private boolean partDrained(Operation op, long word) {
    if (!isBetween(op)) {
      if (!granted(op, word) || op.part == op.parts - 1) {
        return mistrust(op, word);
      }
      op.wholeSoFar &= isDrainedWhole(op);
      sealing.takeChecksums(op);
      freePlan(op);
      op.phase = Operation.Phase.BETWEEN;
      if (!never(op)) {
        grantInTurn(op);
        grantWaiting(op.session);
        return true;
      }
    }
    return never(op) && reapBetween(op, word);
  }

  private boolean isDrainedWhole(Operation op) {
    GrantTable table = op.session.table;
    return table.engineStatus(op.slot) == Status.OK
        && table.entriesDone(op.slot) == op.entriesSoFar;
  }

  private boolean reapBetween(Operation op, long word) {
    Session session = op.session;
    Status status = neverStatus(op);
    session.table.setOutcome(
        op.slot, status, 0, op.held, op.refused + op.entries, "ended between two parts");
    if (!session.table.tryManagerMove(op.slot, word, GrantState.REAPED)) {
      return false; // the engine has given up itself
    }
    failed++;
    session.waitingForBank.remove(op);
    sealing.sendReply(op, false);
    releaseOwners(op);
    settle(op);
    wake(op);
    grantWaiting(session);
    return true;
  }

  private Status neverStatus(Operation op) {
    if (op.session.lost) {
      return Status.SESSION_ENDED;
    }
    return op.registration.closing ? Status.STALE_REGISTRATION : Status.STOPPING;
  }

  private void endPrepared(Operation op, Status status, String text) {
    Session session = op.session;
    releaseOwners(op);
    session.table.setOutcome(op.slot, status, 0, op.held, op.refused + op.entries, text);
    failed++;
    sealing.sendReply(op, false);
    reapPrepared(op);
    settle(op);
    wake(op);
  }

  /**
   * Moves a record that was not granted to Reaped, from Preparing or from where the engine's cancel
   * has moved it.
   */
  private static void reapPrepared(Operation op) {
    GrantTable table = op.session.table;
    if (!table.tryManagerMove(op.slot, word(op, GrantState.PREPARING), GrantState.REAPED)) {
      table.tryManagerMove(op.slot, word(op, GrantState.CANCEL_REQUESTED), GrantState.REAPED);
    }
  }

  private boolean revoke(Operation op, long word, Status status, String text) {
    Session session = op.session;
    session.table.setOutcome(op.slot, status, 0, op.held, op.refused + op.entries, text);
    if (!session.table.tryManagerMove(op.slot, word, GrantState.REVOKED)) {
      return false; // the engine is Active: it will drain
    }
    failed++;
    sealing.sendReply(op, false);
    releaseOwners(op);
    freePlan(op);
    session.table.tryManagerMove(
        op.slot, GrantWord.withState(word, GrantState.REVOKED), GrantState.REAPED);
    settle(op);
    wake(op);
    grantWaiting(session);
    return true;
  }

  /** Takes a grant back because others wait; false when the engine has taken it up meanwhile. */
  boolean revokeForOthers(Operation op, String text) {
    try {
      return revoke(op, word(op, GrantState.GRANTED), Status.LIMIT, text);
    } catch (RuntimeException e) {
      throw quarantine(op, e);
    }
  }

  private boolean reapActive(Operation op, long word) {
    return op.session.table.tryManagerMove(op.slot, word, GrantState.REAPED) && endUnproven(op);
  }

  /**
   * The device accepts the end of the process as proof that the copies have ended: nothing is
   * sealed.
   */
  private boolean endUnproven(Operation op) {
    failed++;
    releaseOwners(op);
    freePlan(op);
    settle(op);
    return true;
  }

  private boolean drained(Operation op, long word) {
    Session session = op.session;
    Status result = session.table.engineStatus(op.slot);
    boolean isLastPart = !isBetween(op) && op.part == op.parts - 1;
    boolean whole = isLastPart && op.wholeSoFar && isDrainedWhole(op);
    if (isBetween(op)) {
      session.waitingForBank.remove(op);
    }
    store.nextOperation();
    if (op.publish) {
      finishPublish(op, whole, result);
    } else {
      finishRestore(op, whole, result);
    }
    freePlan(op);
    session.table.tryManagerMove(op.slot, word, GrantState.REAPED);
    settle(op);
    wake(op);
    grantWaiting(session);
    return true;
  }

  private void finishRestore(Operation op, boolean whole, Status result) {
    store.touch(op.rows, op.count);
    long bytes = 0;
    for (int i = 0; i < op.count; i++) {
      bytes += store.spaceOf(op.rows[i]).blockBytes;
      store.unpin(op.rows[i]);
    }
    if (whole) {
      restoredBytes += bytes;
      op.session.restoredBlocks += op.count;
      op.session.restoredBytes += bytes;
    } else {
      dropDamaged(op);
    }
    restores += whole ? 1 : 0;
    failed += whole ? 0 : 1;
    op.session.table.setOutcome(op.slot, whole ? Status.OK : failure(result), 0, 0, 0, "");
  }

  /**
   * Drops the blocks of the last part in whose plan the engine has left another sum than they were
   * published with. It may do so to what it had a lease on; the worst of it is a miss. A block that
   * others hold stays until one of them tells the same.
   */
  private void dropDamaged(Operation op) {
    if (op.planOffset == Operation.NO_PLAN) {
      return;
    }
    MemorySegment memory = op.session.table.memory();
    long at = GrantTable.bankAt(op.planOffset);
    for (int i = op.partFirst; i < op.partEnd; i++, at += PlanEntry.BYTES) {
      int row = op.rows[i];
      if (PlanEntry.crc(memory, at) != store.crc(row)) {
        damaged += store.discard(row) ? 1 : 0;
      }
    }
  }

  private static Status failure(Status result) {
    return result == Status.OK ? Status.COPY_FAILED : result;
  }

  private void finishPublish(Operation op, boolean whole, Status result) {
    if (!whole) {
      int lost = op.entries;
      releaseOwners(op);
      failed++;
      op.session.table.setOutcome(
          op.slot, failure(result), 0, op.held, op.refused + lost, "not stored");
      sealing.sendReply(op, false);
      return;
    }
    int heldBefore = op.held;
    int refusedBefore = op.refused;
    sealing.takeChecksums(op);
    sealing.seal(op);
    publishes++;
    held += op.held - heldBefore;
    int cleared = op.refused - refusedBefore;
    int stored = op.entries - (op.held - heldBefore) - cleared;
    Status status = op.refused > 0 ? Status.POOL_FULL : Status.OK;
    String text = op.refused > 0 ? "pool is in use: refused=" + op.refused : "";
    if (cleared > 0) {
      status = Status.CANCELLED;
      text = "cleared while it was being published: blocks=" + cleared;
    }
    op.session.table.setOutcome(op.slot, status, stored, op.held, op.refused, text);
    sealing.sendReply(op, true);
  }

  private void releaseOwners(Operation op) {
    for (int i = 0; i < op.count; i++) {
      int code = op.rows[i];
      if (!op.publish) {
        store.unpin(code);
      } else if (Operation.isOwned(code)) {
        store.abandon(code);
      }
    }
  }

  /** Lets go of what a publish only held: the blocks that were there, and what it continues. */
  private void unpinHeld(Operation op) {
    for (int i = 0; i < op.count; i++) {
      if (Operation.isHeld(op.rows[i])) {
        store.unpin(Operation.heldRow(op.rows[i]));
      }
    }
    for (int s = 0; s < op.sectionCount; s++) {
      int parent = op.parent(s);
      if (parent >= 0) {
        store.unpin(parent);
      }
    }
  }

  private void settle(Operation op) {
    if (op.publish && op.rows != null) {
      unpinHeld(op);
    }
    if (op.rows != null) {
      arrays.give(op.rows);
      arrays.give(op.pages);
      op.rows = null;
      op.pages = null;
    }
    if (op.sections != null) {
      arrays.give(op.sections);
      op.sections = null;
    }
    op.phase = Operation.Phase.SETTLED;
    op.session.metadataBytes -= op.metadataBytes;
    op.metadataBytes = 0;
    op.session.unsettled--;
    active--;
    if (op.begun) {
      op.begun = false;
      op.registration.unsettled--;
    }
    onSettled.accept(op);
    op.registration = null;
  }

  private void wake(Operation op) {
    if (op.session.lost) {
      return;
    }
    if (op.publish) {
      output.wakePublish(op.session.slot);
    } else {
      output.wakeRestore(op.session.slot);
    }
  }
}
