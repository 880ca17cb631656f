package io.orbitkv.client;

import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Registered memory of an engine. Thread-safe. */
public final class Registration implements AutoCloseable {
  private static final long POLL_NS = 100_000;

  private final OrbitKvClient client;
  private final EngineSession session;
  private final int id;
  private final int generation;
  private final byte[] namespace;
  private final int hashBytes;
  private final boolean restoreOnly;
  private final GroupMemory[] groups;
  private final PageClaims[] claims;
  private final Arenas arenas;
  private final MemorySegment[] segments;
  private final CopyTools.Pool tools;
  private final Set<EngineOperation> operations = ConcurrentHashMap.newKeySet();
  private volatile boolean closing;
  private boolean unregistered;
  private boolean unmapped;

  Registration(
      OrbitKvClient client,
      EngineSession session,
      int id,
      int generation,
      byte[] namespace,
      int hashBytes,
      boolean restoreOnly,
      GroupMemory[] groups,
      Arenas arenas) {
    this.client = client;
    this.session = session;
    this.id = id;
    this.generation = generation;
    this.namespace = namespace;
    this.hashBytes = hashBytes;
    this.restoreOnly = restoreOnly;
    this.groups = groups;
    this.arenas = arenas;
    this.segments = arenas.segments();
    this.tools = new CopyTools.Pool(segments);
    this.claims = new PageClaims[groups.length];
    for (int i = 0; i < groups.length; i++) {
      if (groups[i] != null) {
        claims[i] = PageClaims.enter(groups[i].address());
      }
    }
  }

  /** Digest of the state, for lookups. */
  public byte[] namespace() {
    return namespace.clone();
  }

  /** Id within the Manager. */
  public int id() {
    return id;
  }

  /** Generation of the instance's registration. */
  public int generation() {
    return generation;
  }

  /**
   * Begins to restore the blocks of leases.
   *
   * @param items leases, each consumed whole, and their target pages
   * @param fence done once earlier users of the target pages are
   * @throws OrbitKvException when an item breaks a rule or nothing more can be submitted; the
   *     leases stay then
   */
  public RestoreHandle restore(List<RestoreItem> items, Fence fence) {
    List<RestoreItem> copy = List.copyOf(items);
    requireUsable(fence, copy.size());
    requireSessionToRestore();
    int blocks = 0;
    for (RestoreItem item : copy) {
      checkItem(item);
      blocks = addBlocks(blocks, item.pages().length);
    }
    RestoreSpan span = new RestoreSpan(id, generation, copy);
    requireSpan("restore", span.byteSize());
    Target.Builder target = new Target.Builder(groups, blocks);
    for (RestoreItem item : copy) {
      target.add(item.lease().group(), item.pages());
    }
    claim(copy);
    RestoreOperation operation =
        new RestoreOperation(
            session,
            span,
            fence,
            client.timeoutNs(),
            target.build(),
            segments,
            tools,
            claims,
            client.config().verify());
    submit(operation);
    if (operation.isSettled() && operation.isNeverBegun()) {
      requireSessionToRestore();
      RestoreResult early = operation.result();
      throw new OrbitKvException(early.status(), early.message());
    } // what has begun tells its end by its handle, even if that has come already
    return new RestoreHandle(operation, client.handle(operation));
  }

  /**
   * Begins to publish blocks.
   *
   * @param items blocks, their hashes and source pages
   * @param fence done once the bytes of the pages are written
   * @throws SaveNotSubmittedException when nothing more can be submitted: the session is over, a
   *     ring or the grant table is full, or the publishes of this process, 1,024 and 32 MiB of
   *     descriptions, are all in use
   * @throws OrbitKvException when an item breaks a rule
   */
  public PublishHandle publish(List<PublishItem> items, Fence fence) {
    return handle(begin(items, fence, 1));
  }

  /** As {@link #publish}; the handle is charged too. */
  SaveHandle save(List<PublishItem> items, Fence fence) {
    PublishOperation operation = begin(items, fence, 2);
    return new SaveHandle(handle(operation), operation.charge());
  }

  private PublishHandle handle(PublishOperation operation) {
    return new PublishHandle(operation, client.handle(operation));
  }

  /** Begins a publish whose charge has so many owners, the operation being one of them. */
  private PublishOperation begin(List<PublishItem> items, Fence fence, int owners) {
    List<PublishItem> copy = List.copyOf(items);
    requireUsable(fence, copy.size());
    requireSessionToPublish();
    if (restoreOnly) {
      throw new OrbitKvException(
          Status.RESTORE_ONLY, "publish: registration=" + id + " may restore only");
    }
    int blocks = 0;
    for (PublishItem item : copy) {
      checkItem(item);
      blocks = addBlocks(blocks, item.pages().length);
    }
    PublishSpan span = new PublishSpan(id, generation, hashBytes, copy);
    requireSpan("publish", span.byteSize());
    Target.Builder target = new Target.Builder(groups, blocks);
    for (PublishItem item : copy) {
      target.add(item.group(), item.pages());
    }
    SaveBudget.Charge charge =
        SaveBudget.PROCESS.charge(SaveBudget.bytes(blocks, hashBytes, copy.size()), owners);
    PublishOperation operation =
        new PublishOperation(
            session, span, charge, fence, client.timeoutNs(), target.build(), segments, tools);
    submit(operation);
    if (operation.isSettled() && operation.isNeverBegun()) {
      for (int owner = 1; owner < owners; owner++) {
        charge.release();
      }
      requireSessionToPublish();
      PublishResult early = operation.result();
      throw new SaveNotSubmittedException(early.status(), early.message());
    }
    return operation;
  }

  /** Fails when the session is over; of all reasons not to submit a restore this one counts. */
  private void requireSessionToRestore() {
    session.requireOpen();
    client.requireOpen();
  }

  /** As {@link #requireSessionToRestore}, for a publish. */
  private void requireSessionToPublish() {
    if (!client.isOpen()) {
      throw new SaveNotSubmittedException(
          Status.SESSION_ENDED, "session is over: " + client.endReason());
    }
  }

  private void requireUsable(Fence fence, int items) {
    if (fence == null) {
      throw invalid("fence is missing");
    }
    if (items == 0) {
      throw invalid("items=0, at least 1");
    }
    if (closing) {
      throw new OrbitKvException(Status.UNKNOWN_REGISTRATION, "registration=" + id + " is closed");
    }
  }

  private void checkItem(RestoreItem item) {
    Lease lease = item.lease();
    if (lease.epoch() != session.epoch()) {
      throw new OrbitKvException(
          Status.EPOCH_MISMATCH,
          "lease=%d: epoch=%x, the Manager's=%x"
              .formatted(lease.id(), lease.epoch(), session.epoch()));
    }
    if (item.skip() < 0 || (long) item.skip() + item.pages().length > lease.blocks()) {
      throw invalid(
          "lease="
              + lease.id()
              + ": skip="
              + item.skip()
              + ", pages="
              + item.pages().length
              + ", blocks="
              + lease.blocks());
    }
    checkPages(lease.group(), item.pages());
  }

  private void checkItem(PublishItem item) {
    checkPages(item.group(), item.pages());
    BlockHashes hashes = item.hashes();
    if (hashes.hashBytes() != hashBytes) {
      throw invalid("hash bytes=" + hashes.hashBytes() + ", registered=" + hashBytes);
    }
    if (hashes.size() != item.pages().length) {
      throw invalid("hashes=" + hashes.size() + ", pages=" + item.pages().length);
    }
    byte[] parent = item.parent();
    if (item.position() < 0 || (parent == null) != (item.position() == 0)) {
      throw invalid(
          "position="
              + item.position()
              + " with parent="
              + (parent != null)
              + ": a block has a parent unless it is the first");
    }
    if (parent != null && parent.length != hashBytes) {
      throw invalid("bytes of the parent=" + parent.length + ", registered=" + hashBytes);
    }
    claims[item.group()].requireUnclaimed(item.pages());
  }

  private void checkPages(int group, int[] pages) {
    if (group < 0 || group >= groups.length || groups[group] == null) {
      throw invalid("group=" + group + " is not registered");
    }
    if (pages.length == 0) {
      throw invalid("group=" + group + ": pages=0, at least 1");
    }
    groups[group].requirePages(pages);
  }

  private static int addBlocks(int blocks, int more) {
    if (more > Protocol.MAX_HASHES - blocks) {
      throw new OrbitKvException(
          Status.PLAN_TOO_LARGE,
          "blocks="
              + ((long) blocks + more)
              + ", limit of an operation="
              + Protocol.MAX_HASHES
              + ": its command is one span of at most "
              + Protocol.MAX_SPAN_BYTES
              + " bytes");
    }
    return blocks + more;
  }

  private static void requireSpan(String what, long bytes) {
    if (bytes > Protocol.MAX_SPAN_BYTES) {
      throw new OrbitKvException(
          Status.LIMIT, what + ": bytes=" + bytes + ", limit=" + Protocol.MAX_SPAN_BYTES);
    }
  }

  private static OrbitKvException invalid(String what) {
    return new OrbitKvException(Status.INVALID, what);
  }

  /** Claims the pages of all items or of none. */
  private void claim(List<RestoreItem> items) {
    int claimed = 0;
    try {
      for (RestoreItem item : items) {
        claims[item.lease().group()].claim(item.pages());
        claimed++;
      }
    } finally {
      for (int i = 0; claimed < items.size() && i < claimed; i++) {
        claims[items.get(i).lease().group()].release(items.get(i).pages());
      }
    }
  }

  /** Acknowledges an operation that has been reaped; true when nothing is left of it. */
  private static boolean settle(EngineOperation operation) {
    if (operation.isDone() && !operation.isSettled() && operation.tryDrive()) {
      try {
        while (operation.step(System.nanoTime())) {
          Thread.onSpinWait();
        }
      } finally {
        operation.endDrive();
      }
    }
    return operation.isSettled();
  }

  /** Reserves a record and submits the command on this thread. */
  private void submit(EngineOperation operation) {
    operations.removeIf(Registration::settle); // records return as fast as they are taken
    if (!operation.tryDrive()) { // before a close finds it, which would step it too
      throw new IllegalStateException("a new operation has a driver");
    }
    try {
      operations.add(operation);
      operation.pausePoint("admitted");
      if (closing) {
        operation.cancel(Status.UNKNOWN_REGISTRATION, "registration=" + id + " is closed");
      }
      operation.step(System.nanoTime()); // reserve
      operation.step(System.nanoTime()); // submit
      operation.step(System.nanoTime()); // first look; undoes a reservation that was not submitted
    } finally {
      operation.endDrive();
    }
    client.agents().submitted();
  }

  /**
   * Withdraws the registration: nothing more is admitted, what is pending is cancelled, and this
   * returns when the pages of every operation are free. Idempotent; may be called again after a
   * time-out. An interrupt does not cut it short.
   *
   * @throws OrbitKvTimeoutException naming what it waited for; the arenas stay mapped then
   */
  @Override
  public synchronized void close() {
    closing = true;
    for (EngineOperation operation : operations) {
      operation.cancel(Status.CANCELLED, "registration=" + id + " is closed");
    }
    client.agents().kickAgents();
    awaitPages(client.timeoutNs());
    if (!unregistered && !session.isOver()) {
      client.unregister(id, generation);
    }
    unregistered = true;
    unmap();
    client.forget(this);
  }

  /** Makes a step; false when another thread drives the operation, or nothing moved. */
  private static boolean step(EngineOperation operation) {
    if (!operation.tryDrive()) {
      return false;
    }
    try {
      return operation.step(System.nanoTime());
    } finally {
      operation.endDrive();
    }
  }

  private void awaitPages(long timeoutNs) {
    long began = System.nanoTime();
    for (EngineOperation operation : operations) {
      while (!operation.pagesFree()) {
        if (System.nanoTime() - began > timeoutNs) {
          throw new OrbitKvTimeoutException(
              "unregister: registration="
                  + id
                  + " waits for the pages of operation="
                  + operation.operationId()
                  + ", ms="
                  + TimeUnit.NANOSECONDS.toMillis(timeoutNs));
        }
        if (!step(operation)) {
          Uninterruptibly.park(this, POLL_NS);
        }
      }
    }
  }

  private void unmap() {
    if (unmapped) {
      return;
    }
    arenas.close();
    unmapped = true;
    for (PageClaims claim : claims) {
      if (claim != null) {
        claim.leave();
      }
    }
  }
}
