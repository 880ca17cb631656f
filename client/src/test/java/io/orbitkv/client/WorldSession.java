package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.RegistrationRequest;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;

/** One session of a {@link GrantWorld}: both ends of its channel and both views of its table. */
final class WorldSession implements SteppedTable.Watcher {
  static final int HASH_BYTES = 16;

  /** Dirty bits of the first records. */
  private static final long DIRTY_OFFSET = 256;

  private static final int[] REQUEST_RINGS = {
    ChannelDescriptor.QUERY_REQUESTS, ChannelDescriptor.PUBLISH_REQUESTS
  };

  final int index;
  final WorldManager manager;
  final WorldProcess process;
  final int slot;
  final MemorySegment grants;
  final GrantTable engineTable;
  final SteppedTable managerTable;
  final EngineSession engine;
  final CommandRing.Producer[] replies = new CommandRing.Producer[4];
  final ByteRing.Producer[] replyBytes = new ByteRing.Producer[4];
  final MemorySegment[] arenas;
  final CopyTools.Pool tools;
  final PageClaims[] claims;
  CacheCore.RegistrationId registration;

  /** The Manager knows that the session is over. */
  boolean lossSeen;

  /** The Manager has taken the end of the process as seen. */
  boolean exitSeen;

  /** What the latest command names: an operation, but for releases. */
  long commandId;

  boolean settled;
  boolean violated;
  boolean withdrawing;
  boolean withdrawn;

  private final CommandRing.Consumer[] requests = new CommandRing.Consumer[4];
  private final ByteRing.Consumer[] requestBytes = new ByteRing.Consumer[4];

  /** What waits in the request rings, in order, by ring. */
  private final List<ArrayDeque<Integer>> waiting =
      List.of(new ArrayDeque<>(), new ArrayDeque<>(), new ArrayDeque<>());

  private final GrantWorld world;

  WorldSession(
      GrantWorld world,
      Scenario scenario,
      int index,
      boolean isObserved,
      WorldManager manager,
      WorldProcess process,
      WorldMemory memory,
      WorldSession former) {
    this.world = world;
    this.index = index;
    this.manager = manager;
    this.process = process;
    MemorySegment channel = memory.take(ChannelDescriptor.REGION_BYTES);
    ChannelDescriptor.format(channel, 0, manager.epoch, 0);
    boolean givenOn = former != null && scenario.is(Scenario.Weakness.TABLE_IS_GIVEN_ON);
    grants = givenOn ? former.grants.fill((byte) 0) : memory.take(GrantTable.REGION_BYTES);
    GrantTable.format(grants);
    engineTable = scenario.tables.engine().apply(grants);
    managerTable = scenario.tables.manager().apply(grants, this);
    engine = new EngineSession(channel, engineTable, manager.epoch, () -> {});
    arenas = new MemorySegment[] {manager.arena};
    tools = new CopyTools.Pool(arenas);
    boolean own = index == 1 && scenario.is(Scenario.Weakness.CLAIMS_DIE_WITH_THE_SESSION);
    claims = own ? process.otherClaims : process.claims;
    for (int ring : REQUEST_RINGS) {
      requests[ring] = new CommandRing.Consumer(channel, ring);
      requestBytes[ring] = new ByteRing.Consumer(channel, ring);
      replies[ring + 1] = new CommandRing.Producer(channel, ring + 1);
      replyBytes[ring + 1] = new ByteRing.Producer(channel, ring + 1);
    }
    slot = manager.core.reserveSlot();
    manager.add(this);
    manager.core.openSession(slot, managerTable, "engine", "world", 1 + index, isObserved, 1);
    register(scenario);
    narrow(scenario);
  }

  void register(Scenario scenario) {
    boolean proves = scenario.exitProves || scenario.is(Scenario.Weakness.DEVICE_EXIT_IS_PROOF);
    int rank = scenario.second == Scenario.Second.TOGETHER ? index : 0;
    registration =
        manager.core.register(
            slot,
            new RegistrationRequest(
                new byte[Protocol.NAMESPACE_BYTES],
                HASH_BYTES,
                rank,
                0,
                0,
                List.of(
                    new RegistrationRequest.Group(0, WorldProcess.BLOCK_BYTES, WorldProcess.PAGES)),
                false,
                proves),
            1);
    manager.core.confirmMappings(slot, registration.id(), registration.generation());
    withdrawing = false;
    withdrawn = false;
  }

  /** Leaves the session one record, or its bank room for one part. */
  private void narrow(Scenario scenario) {
    if (scenario.oneRecord) {
      StateHash.setField(engine, "freeCount", 1);
    }
    if (scenario.fullBank) {
      Arrays.fill(bank(), -1L);
      bank()[0] = -2L;
    }
  }

  /** Has the core believe that no operation uses the session's registrations. */
  void forgetOperations() {
    for (Object each : (List<?>) StateHash.field(coreSession(), "registrations")) {
      StateHash.setField(each, "unsettled", 0);
    }
  }

  /** Units of the plan bank that are taken. */
  private long[] bank() {
    return (long[]) StateHash.field(StateHash.field(coreSession(), "bank"), "used");
  }

  /** True when nothing but what {@link #narrow} has taken is taken of the plan bank. */
  boolean isBankFree(Scenario scenario) {
    long rest = scenario.fullBank ? -1L : 0;
    long[] used = bank();
    for (int i = 0; i < used.length; i++) {
      if (used[i] != (i == 0 && scenario.fullBank ? -2L : rest)) {
        return false;
      }
    }
    return true;
  }

  /** The core's session, or null once it is settled. */
  Object coreSession() {
    Object found = ((Object[]) StateHash.field(manager.core, "sessions"))[slot];
    return found != null && managerTable.isOf(StateHash.field(found, "table")) ? found : null;
  }

  boolean isServed() {
    return !manager.dead && !settled;
  }

  boolean hasUnreadDrains() {
    Object mine = coreSession();
    return mine != null
        && (long) StateHash.field(mine, "drainsSeen") != Memory.getLongAcquire(grants, 128);
  }

  void loseDirtyBits() {
    Memory.putLong(grants, DIRTY_OFFSET, 0);
  }

  /** Has the core take one command. */
  void takeCommand(long now) {
    for (int ring : REQUEST_RINGS) {
      Command command = new Command();
      if (requests[ring].tryRead(command)) {
        commandId = command.scalar0;
        waiting.get(ring).poll();
        int length =
            command.dataLength == 0 ? 0 : requestBytes[ring].take(command, manager.commandData);
        manager.core.execute(slot, ring, command, manager.commandData, length, now);
        return;
      }
    }
  }

  /** Takes note of what an engine has put into the rings. */
  void noteSubmitted(int what) {
    for (int ring : REQUEST_RINGS) {
      String name = ring == ChannelDescriptor.QUERY_REQUESTS ? "queries" : "publishes";
      Object commands = StateHash.field(StateHash.field(engine, name), "commands");
      long count =
          (long) StateHash.field(commands, "tail") - (long) StateHash.field(requests[ring], "head");
      while (waiting.get(ring).size() < count) {
        waiting.get(ring).add(what);
      }
    }
  }

  @Override
  public void before(String access) {
    world.before(this, access);
  }

  @Override
  public void read(long value) {
    world.read(value);
  }

  /** Takes the next command as if it had never come. */
  void dropCommand() {
    for (int ring : REQUEST_RINGS) {
      if (requests[ring].tryRead(new Command())) {
        waiting.get(ring).poll();
        return;
      }
    }
  }

  boolean hasCommand() {
    return requests[ChannelDescriptor.QUERY_REQUESTS].hasNext()
        || requests[ChannelDescriptor.PUBLISH_REQUESTS].hasNext();
  }

  /** A lease on blocks that are resident, asked for by this session. */
  Lease lease(Scenario.Op op) {
    MemorySegment data = manager.commandData;
    int count = op.blocks();
    data.asSlice(0, LookupRequest.hashesAt(1)).fill((byte) 0); // the namespace's digest too
    LookupRequest.writeHeader(data, 0, LookupRequest.PREFIX, HASH_BYTES, 1, count, 0, 0, 0, 1);
    MemorySegment bytes = hashes(op).bytes();
    MemorySegment.copy(bytes, 0, data, LookupRequest.hashesAt(1), bytes.byteSize());
    Command command = new Command().set(Opcode.LOOKUP, 0, 1, manager.epoch, 0, 0);
    int length = (int) LookupRequest.byteSize(1, count, HASH_BYTES);
    manager.core.execute(slot, ChannelDescriptor.QUERY_REQUESTS, command, data, length, 1);
    MemorySegment channel = engine.channel();
    new ByteRing.Consumer(channel, ChannelDescriptor.QUERY_REPLIES).take(manager.lastReply, data);
    long id = LookupReply.leaseId(data, LookupReply.leaseAt(0, 0, 1, count));
    return new Lease(id, manager.epoch, 0, 0, count);
  }

  void release(Lease lease, long now) {
    Command command = new Command().set(Opcode.RELEASE, 0, 1, manager.epoch, lease.id(), 0);
    manager.core.execute(
        slot, ChannelDescriptor.QUERY_REQUESTS, command, manager.commandData, 0, now);
  }

  static BlockHashes hashes(Scenario.Op op) {
    byte[] bytes = new byte[HASH_BYTES * op.blocks()];
    for (int i = 0; i < op.blocks(); i++) {
      Memory.putLong(MemorySegment.ofArray(bytes), (long) HASH_BYTES * i, op.key() + i + 1L);
    }
    return BlockHashes.of(bytes, HASH_BYTES);
  }

  void addTo(StateHash hash) {
    hash.add(lossSeen).add(exitSeen).add(settled).add(withdrawing).add(withdrawn);
    hash.add(engine.overReason() != null).add(manager.dead).add(process.dead);
    hash.add(registration.generation()).add(engine.freeSlots()).add(engine.hasPublishReplies());
    waiting.forEach(ring -> ring.forEach(what -> hash.add(what)));
    hash.add(Memory.getLongAcquire(grants, DIRTY_OFFSET)).add(hasUnreadDrains());
    Object mine = coreSession();
    hash.add(mine != null);
    if (mine != null) {
      hash.add((boolean) StateHash.field(mine, "lost"));
      hash.add((boolean) StateHash.field(mine, "exited"));
      for (Object deferred : (ArrayDeque<?>) StateHash.field(mine, "waitingForBank")) {
        hash.add((int) StateHash.field(deferred, "slot"));
      }
    }
  }
}
