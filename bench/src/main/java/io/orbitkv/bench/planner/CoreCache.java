package io.orbitkv.bench.planner;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.PublishRequest;
import io.orbitkv.channel.RestoreRequest;
import io.orbitkv.channel.Status;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreOutput;
import io.orbitkv.core.RegistrationRequest;
import io.orbitkv.core.SsdConfig;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The real core, driven by an engine that copies nothing: lookup, restore of what was found,
 * publish of the rest, through the same commands and grants as a real one.
 */
final class CoreCache implements PrefixCache {
  /** Most blocks of a request. */
  static final int MAX_BLOCKS = 65_536;

  private static final int BLOCK_BYTES = 512; // the smallest slot; nothing is stored in it
  private static final int HASH_BYTES = 32;
  private static final int NAMESPACE_BYTES = 32;
  private static final int SPAN_BYTES = 4 << 20;
  private static final long EPOCH = 1;
  private static final long REQUEST_NS = 1_000_000_000L; // tables are written once a second

  private final Arena arena = Arena.ofConfined();
  private final MemorySegment data = arena.allocate(SPAN_BYTES, Long.BYTES);
  private final MemorySegment replyData = arena.allocate(SPAN_BYTES, Long.BYTES);
  private final Command command = new Command();
  private final Command lastReply = new Command();
  private final GrantTable table;
  private final ByteRing.Consumer queryReplies;
  private final ByteRing.Consumer publishReplies;
  private final CacheCore core;
  private final int session;
  private final CacheCore.RegistrationId registration;
  private final InstantSsd ssd; // null without one
  private long nowNs;
  private long queries;

  /** A core whose pool holds so many blocks. */
  CoreCache(int blocks) {
    this(blocks, null);
  }

  /** A core with an SSD tier that holds so many blocks. */
  CoreCache(int blocks, int ssdBlocks, SsdConfig.WritePolicy writes) {
    this(blocks, InstantSsd.config(ssdBlocks, writes));
  }

  private CoreCache(int blocks, SsdConfig ssdConfig) {
    ssd = ssdConfig == null ? null : new InstantSsd();
    long poolBytes = (long) blocks * BLOCK_BYTES;
    MemorySegment channel = arena.allocate(ChannelDescriptor.REGION_BYTES, 64);
    table = GrantTable.format(arena.allocate(GrantTable.REGION_BYTES, 64));
    queryReplies = new ByteRing.Consumer(channel, ChannelDescriptor.QUERY_REPLIES);
    publishReplies = new ByteRing.Consumer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    core =
        new CacheCore(
            new CoreConfig(
                new long[] {poolBytes},
                poolBytes,
                poolBytes,
                poolBytes,
                CoreConfig.DEFAULT_LEASE_AGE_NS,
                bytes -> arena.allocate(bytes, 64)),
            EPOCH,
            new Output(channel),
            ssdConfig,
            ssd);
    session = core.reserveSlot();
    core.openSession(session, table, "planner", "planner", 1, true, 0);
    registration =
        core.register(
            session,
            new RegistrationRequest(
                new byte[NAMESPACE_BYTES],
                HASH_BYTES,
                0,
                0,
                0,
                List.of(new RegistrationRequest.Group(0, BLOCK_BYTES, MAX_BLOCKS)),
                false,
                true),
            0);
    core.confirmMappings(session, registration.id(), registration.generation());
  }

  @Override
  public int request(int[] ids) {
    if (ids.length == 0) {
      return 0;
    }
    int hit = restore(ids);
    if (hit < ids.length) {
      publish(ids, hit);
    }
    if (ssd != null) {
      nowNs += REQUEST_NS;
      core.tick(nowNs);
      ssd.settle(core, nowNs);
    }
    return hit;
  }

  /** Blocks written to SSD so far. */
  long writtenBlocks() {
    return core.stats(nowNs).ssd().writtenBlocksTotal();
  }

  /** Blocks loaded from SSD so far. */
  long loadedBlocks() {
    return core.stats(nowNs).ssd().readBlocksTotal();
  }

  /** Looks the prefix up and restores what is held, loaded first where only SSD has it. */
  private int restore(int[] ids) {
    queries += ssd == null ? 0 : 1; // with a number, what is held for a load is held until it ends
    lookUp(ids);
    while (LookupReply.outcome(replyData, 0) == LookupReply.LOADING) {
      ssd.settle(core, nowNs);
      lookUp(ids);
    }
    int hit = LookupReply.prefix(replyData, LookupReply.groupAt(0, 0, ids.length));
    if (hit > 0) {
      restoreLeased(ids.length, hit);
    }
    return hit;
  }

  private void lookUp(int[] ids) {
    LookupRequest.writeHeader(
        data, 0, LookupRequest.PREFIX, HASH_BYTES, 1, ids.length, queries, 0, 0, 1);
    data.asSlice(LookupRequest.namespaceAt(0), NAMESPACE_BYTES).fill((byte) 0);
    for (int i = 0; i < ids.length; i++) {
      putHash(LookupRequest.hashesAt(1) + (long) HASH_BYTES * i, ids[i]);
    }
    int length = (int) LookupRequest.byteSize(1, ids.length, HASH_BYTES);
    send(ChannelDescriptor.QUERY_REQUESTS, Opcode.LOOKUP, 0, length);
    check("lookup", Status.of(lastReply.status));
    queryReplies.take(lastReply, replyData);
  }

  private void restoreLeased(int asked, int hit) {
    long lease = LookupReply.leaseId(replyData, LookupReply.leaseAt(0, 0, 1, asked));
    RestoreRequest.writeHeader(data, 0, registration.id(), registration.generation(), 1, hit);
    long section = RestoreRequest.headerBytes();
    RestoreRequest.writeSection(data, section, lease, 0, hit);
    for (int i = 0; i < hit; i++) {
      Memory.putInt(data, RestoreRequest.pageAt(section, i), i);
    }
    int bytes = (int) (section + RestoreRequest.sectionBytes(hit));
    operate(GrantTable.RESTORE, ChannelDescriptor.QUERY_REQUESTS, Opcode.RESTORE, bytes);
  }

  private void publish(int[] ids, int from) {
    int count = ids.length - from;
    PublishRequest.writeHeader(
        data, 0, registration.id(), registration.generation(), 1, HASH_BYTES, count);
    long section = PublishRequest.headerBytes();
    PublishRequest.writeSection(data, section, 0, from > 0, from, count);
    if (from > 0) {
      putHash(PublishRequest.parentAt(section), ids[from - 1]);
    }
    for (int i = 0; i < count; i++) {
      putHash(PublishRequest.hashAt(section, i, HASH_BYTES), ids[from + i]);
      Memory.putInt(data, PublishRequest.pageAt(section, i, count, HASH_BYTES), i);
    }
    int bytes = (int) (section + PublishRequest.sectionBytes(count, HASH_BYTES));
    operate(GrantTable.PUBLISH, ChannelDescriptor.PUBLISH_REQUESTS, Opcode.PUBLISH, bytes);
  }

  private void putHash(long at, int id) {
    Memory.putLong(data, at, id * 0x9e37_79b9_7f4a_7c15L);
    Memory.putLong(data, at + 8, id);
    Memory.putLong(data, at + 16, ~(long) id);
    Memory.putLong(data, at + 24, 0);
  }

  private void send(int ring, int opcode, long scalar, int length) {
    command.set(opcode, 0, 1, EPOCH, scalar, 0);
    core.execute(session, ring, command, data, length, nowNs);
  }

  /** Takes one operation through all its states, as an engine whose copies take no time. */
  private void operate(int kind, int ring, int opcode, int length) {
    long reserved = table.tryReserve(0, kind);
    if (reserved < 0) {
      throw new IllegalStateException("the grant record of the planner is in use");
    }
    send(ring, opcode, GrantWord.operationId(0, GrantWord.generation(reserved)), length);
    int done = 0;
    while (GrantWord.state(table.wordAcquire(0)) == GrantState.GRANTED) {
      move(GrantState.ACTIVE);
      done += table.planEntries(0);
      table.setEngineResult(0, Status.OK, done, 1, 1);
      boolean more = GrantWord.part(table.wordAcquire(0)) < table.parts(0) - 1;
      move(more ? GrantState.PART_DRAINED : GrantState.DRAINED);
      table.markDirty(0);
      core.pollGrants(session, nowNs);
    }
    move(GrantState.ACKNOWLEDGED);
  }

  private void move(GrantState next) {
    if (!table.tryEngineMove(0, table.wordAcquire(0), next)) {
      throw new IllegalStateException(
          "grant: state=" + GrantWord.state(table.wordAcquire(0)) + ", wanted=" + next);
    }
  }

  private static void check(String what, Status status) {
    if (status != Status.OK) {
      throw new IllegalStateException(what + ": status=" + status);
    }
  }

  @Override
  public void close() {
    arena.close();
  }

  /** Takes replies in at once. */
  private final class Output implements CoreOutput {
    private final ByteRing.Producer toQueries;
    private final ByteRing.Producer toPublishes;

    Output(MemorySegment channel) {
      toQueries = new ByteRing.Producer(channel, ChannelDescriptor.QUERY_REPLIES);
      toPublishes = new ByteRing.Producer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    }

    @Override
    public void reply(int slot, int ring, Command reply) {
      lastReply
          .set(
              reply.opcode,
              reply.status,
              reply.requestId,
              reply.epoch,
              reply.scalar0,
              reply.scalar1)
          .data(reply.dataOffset, reply.dataLength, reply.generation);
      if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
        publishReplies.take(lastReply, replyData);
      }
    }

    @Override
    public ByteRing.Producer replyBytes(int slot, int ring) {
      return ring == ChannelDescriptor.QUERY_REPLIES ? toQueries : toPublishes;
    }

    @Override
    public void wakeRestore(int slot) {}

    @Override
    public void wakePublish(int slot) {}

    @Override
    public void sessionSettled(int slot) {}

    @Override
    public void unregistered(int slot, int registrationId) {}

    @Override
    public void violation(int slot, String what) {
      throw new IllegalStateException("the core takes the planner for a broken engine: " + what);
    }
  }
}
