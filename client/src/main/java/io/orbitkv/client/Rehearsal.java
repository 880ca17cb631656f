package io.orbitkv.client;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GroupKind;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Plays publishes, lookups and restores in memory of its own, so that the first request of a new
 * JVM neither loads their classes nor runs them interpreted, nor compiles them on a processor that
 * the engine needs: that costs it milliseconds. {@link RehearsalManager} has the Manager's part.
 */
public final class Rehearsal {
  private static final long EPOCH = 1;
  private static final int HASH_BYTES = 32;
  private static final Duration BOUND = Duration.ofSeconds(20);
  private static final long SPIN_NS = 1_000_000;
  private static final int MAX_STEPS = 1000;

  /** A model of usual depth whose parts of a block are small: all loops run often. */
  private static final Shape MANY_SMALL = new Shape(48, 32, 64);

  /** Parts that the C library copies. */
  private static final Shape FEW_LARGE = new Shape(2, 1, 64 << 10);

  /** Rounds after which the loops of an operation are compiled. */
  private static final int ROUNDS_OF_MANY = 8;

  /** As little to copy as can be: what an operation does once. */
  private static final Shape ONE_SMALL = new Shape(1, 1, 64);

  /** Rounds after which that is compiled: the JVM looks at each 128th call, and waits for 200. */
  private static final int ROUNDS_OF_ONE = 300;

  private record Shape(int blocks, int layers, int pieceBytes) {
    int blockBytes() {
      return layers * pieceBytes;
    }

    long byteSize() {
      return (long) blocks * blockBytes();
    }

    BlockHashes hashes() {
      return BlockHashes.of(new byte[HASH_BYTES * blocks], HASH_BYTES);
    }

    int[] pages() {
      return IntStream.range(0, blocks).toArray();
    }

    /** Layer after layer, each with its pages one behind the other. */
    GroupSpec group(MemorySegment memory) {
      List<GroupSpec.Layer> all = new ArrayList<>(layers);
      for (int i = 0; i < layers; i++) {
        long offset = (long) i * blocks * pieceBytes;
        all.add(
            new GroupSpec.Layer(
                memory, offset, pieceBytes, List.of(new GroupSpec.Segment(0, pieceBytes))));
      }
      return new GroupSpec(0, GroupKind.PREFIX, 0, blocks, all);
    }
  }

  /**
   * What was played; both have ended.
   *
   * @param restore a restore of {@link #blocks} pages
   * @param save a save of as many
   * @param lookup an answer that offers as many
   */
  public record Played(RestoreHandle restore, SaveHandle save, LookupResult lookup) {
    /** Blocks of each. */
    public int blocks() {
      return MANY_SMALL.blocks();
    }
  }

  private final Shape shape;
  private final RehearsalManager manager;
  private final EngineSession session;
  private final QueryCalls queries;
  private final CopyAgents agents;
  private final GroupMemory[] groups;
  private final PageClaims[] claims;
  private final MemorySegment[] arenas;
  private final CopyTools.Pool tools;

  private Rehearsal(
      Shape shape,
      MemorySegment channel,
      MemorySegment grants,
      MemorySegment pages,
      MemorySegment arena,
      EventFd wake) {
    this.shape = shape;
    ChannelDescriptor.format(channel, 0, EPOCH, 0);
    GrantTable table = GrantTable.format(grants);
    manager = new RehearsalManager(channel, table, shape.blocks(), shape.blockBytes());
    session = new EngineSession(channel, table, EPOCH, manager::wake);
    agents = new CopyAgents(session, wake, wake); // without threads
    queries = new QueryCalls(session, agents, SPIN_NS);
    groups = new GroupMemory[] {GroupMemory.of(shape.group(pages), true)};
    claims = new PageClaims[] {PageClaims.enter(groups[0].address())};
    arenas = new MemorySegment[] {arena};
    tools = new CopyTools.Pool(arenas);
  }

  /**
   * Plays everything; takes some tens of milliseconds in a new JVM.
   *
   * @throws IllegalStateException when something did not end as it should
   */
  public static Played play() {
    play(FEW_LARGE, 1);
    return play(MANY_SMALL, ROUNDS_OF_MANY);
  }

  /**
   * Plays operations until also what each does once is compiled; takes some tenths of a second.
   *
   * @throws IllegalStateException as {@link #play()}
   */
  public static void repeat() {
    play(ONE_SMALL, ROUNDS_OF_ONE).save().close();
  }

  private static Played play(Shape shape, int rounds) {
    try (Mapping channel = memory(ChannelDescriptor.REGION_BYTES);
        Mapping grants = memory(GrantTable.REGION_BYTES);
        Mapping pages = memory(shape.byteSize());
        Mapping arena = memory(shape.byteSize());
        EventFd wake = EventFd.create()) {
      Rehearsal rehearsal =
          new Rehearsal(
              shape, channel.segment(), grants.segment(), pages.segment(), arena.segment(), wake);
      try {
        Played played = rehearsal.round();
        for (int i = 1; i < rounds; i++) {
          played.save().close();
          played = rehearsal.round();
        }
        return played;
      } finally {
        rehearsal.claims[0].leave();
        rehearsal.agents.close(0);
      }
    }
  }

  /** Memory of which only what is touched is there, and which leaves nothing in the C heap. */
  private static Mapping memory(long bytes) {
    try (Fd fd = Memfd.create("orbitkv-rehearsal", bytes, Memfd.PageSize.NORMAL)) {
      return Mapping.map(fd, bytes, Mapping.Access.READ_WRITE, false);
    }
  }

  private Played round() {
    SaveHandle save = publish();
    LookupResult lookup = lookup();
    return new Played(restore(lookup.leases().getFirst()), save, lookup);
  }

  private SaveHandle publish() {
    PublishItem item = new PublishItem(0, 0, null, shape.hashes(), shape.pages());
    PublishSpan span = new PublishSpan(0, 1, HASH_BYTES, List.of(item));
    SaveBudget.Charge charge =
        new SaveBudget().charge(SaveBudget.bytes(shape.blocks(), HASH_BYTES, 1), 2);
    PublishOperation operation =
        new PublishOperation(
            session, span, charge, Fence.done(), BOUND.toNanos(), target(), arenas, tools);
    SaveHandle handle = new SaveHandle(new PublishHandle(operation, handle(operation)), charge);
    run(operation); // submits
    manager.grant(operation.operationId());
    run(operation); // copies and says so
    manager.reap(operation.operationId(), shape.blocks());
    require(handle.waitSave(BOUND).map(PublishResult::status).orElse(null));
    run(operation);
    return handle;
  }

  private RestoreHandle restore(Lease lease) {
    int[] pages = shape.pages();
    claims[0].claim(pages);
    RestoreSpan span = new RestoreSpan(0, 1, List.of(RestoreItem.of(lease, pages)));
    RestoreOperation operation =
        new RestoreOperation(
            session, span, Fence.done(), BOUND.toNanos(), target(), arenas, tools, claims, false);
    RestoreHandle handle = new RestoreHandle(operation, handle(operation));
    run(operation); // submits
    manager.grant(operation.operationId());
    for (int layer = 0; layer < shape.layers(); layer++) {
      handle.awaitLayer(layer, BOUND);
    }
    RestoreResult result = handle.await(BOUND);
    require(result == null ? null : result.status());
    manager.reap(operation.operationId(), 0);
    run(operation);
    return handle;
  }

  private LookupResult lookup() {
    byte[] namespace = new byte[Protocol.NAMESPACE_BYTES];
    return queries.lookup(LookupRequestSpec.prefix(namespace, shape.hashes()), BOUND.toNanos());
  }

  private Target target() {
    Target.Builder target = new Target.Builder(groups, shape.blocks());
    target.add(0, shape.pages());
    return target.build();
  }

  private OperationHandle handle(EngineOperation operation) {
    return new OperationHandle(operation, agents, SPIN_NS);
  }

  private static void require(Status status) {
    if (status != Status.OK) {
      throw new IllegalStateException("rehearsal: status=" + status);
    }
  }

  /** Steps an operation as long as it has something to do; nobody else does. */
  private static void run(EngineOperation operation) {
    for (int i = 0; i < MAX_STEPS && operation.step(System.nanoTime()); i++) {
      Thread.onSpinWait();
    }
  }
}
