package io.orbitkv.manager;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.LookupRequest;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.PublishRequest;
import io.orbitkv.channel.RestoreRequest;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Mapping;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.function.BooleanSupplier;

/** A registered engine that writes its commands and moves its records by hand. */
final class RawEngine implements AutoCloseable {
  private static final long BOUND_NS = 20_000_000_000L;
  static final int HASH_BYTES = 16;

  final RawClient client;
  final MemorySegment channel;
  final GrantTable table;
  private final Mapping channelMapping;
  private final Mapping grantMapping;
  private final EventFd managerWake;
  private final CommandRing.Producer[] requests = new CommandRing.Producer[3];
  private final ByteRing.Producer[] requestBytes = new ByteRing.Producer[3];
  private final CommandRing.Consumer queryReplies;
  private final ByteRing.Consumer queryReplyBytes;
  private final byte[] namespace;
  private final int registrationId;
  private final int generation;
  final Command reply = new Command();

  RawEngine(Path socket, String instance) {
    client = new RawClient(socket);
    client.handshake(instance);
    client.confirm();
    channelMapping = map(0, ChannelDescriptor.REGION_BYTES);
    grantMapping = map(1, GrantTable.REGION_BYTES);
    managerWake = EventFd.adopt(client.fds.get(2));
    channel = channelMapping.segment();
    table = GrantTable.open(grantMapping.segment());
    for (int ring = 0; ring < requests.length; ring += 2) {
      requests[ring] = new CommandRing.Producer(channel, ring);
      requestBytes[ring] = new ByteRing.Producer(channel, ring);
    }
    queryReplies = new CommandRing.Consumer(channel, ChannelDescriptor.QUERY_REPLIES);
    queryReplyBytes = new ByteRing.Consumer(channel, ChannelDescriptor.QUERY_REPLIES);
    ManagerFrame registered = client.register(4096, false);
    if (!registered.hasRegistered()) {
      throw new AssertionError("not registered: " + registered);
    }
    registrationId = registered.getRegistered().getRegistrationId();
    generation = registered.getRegistered().getGeneration();
    namespace = registered.getRegistered().getNamespace().toByteArray();
    client.confirmMappings(registrationId, generation);
  }

  private Mapping map(int fd, long bytes) {
    return Mapping.map(client.fds.get(fd), bytes, Mapping.Access.READ_WRITE, false);
  }

  static void eventually(String what, BooleanSupplier condition) {
    long began = System.nanoTime();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - began > BOUND_NS) {
        throw new AssertionError("waited in vain: " + what);
      }
      Thread.onSpinWait();
    }
  }

  /** Writes a command without data, and wakes nobody. */
  void write(int ring, Command command) {
    if (!requests[ring].tryWrite(command)) {
      throw new AssertionError("ring is full");
    }
  }

  /** Writes a command with data, and wakes nobody. */
  void write(int ring, Command command, byte[] data) {
    long at = requestBytes[ring].tryClaim(data.length);
    MemorySegment.copy(
        MemorySegment.ofArray(data), 0, requestBytes[ring].memory(), at, data.length);
    requestBytes[ring].commit(data.length, command);
    write(ring, command);
  }

  void wake() {
    managerWake.signal();
  }

  /** A command of this session. */
  Command command(int opcode, long scalar0) {
    return new Command().set(opcode, 0, 1, client.epochLow, scalar0, 0);
  }

  /** Waits for the next answer on the query ring; returns its status. */
  Status answer() {
    eventually("an answer", () -> queryReplies.tryRead(reply));
    return Status.of(reply.status);
  }

  boolean hasAnswer() {
    return queryReplies.hasNext();
  }

  void ping() {
    write(ChannelDescriptor.QUERY_REQUESTS, command(Opcode.PING, 0));
    wake();
    if (answer() != Status.OK) {
      throw new AssertionError("ping: " + reply.status);
    }
  }

  /** Data of a publish of one block whose hash is made of {@code key}, from page 0. */
  byte[] publishData(long key) {
    return publishData(registrationId, generation, key);
  }

  /** As the other, for a registration. */
  static byte[] publishData(int registrationId, int generation, long key) {
    int bytes = (int) (PublishRequest.headerBytes() + PublishRequest.sectionBytes(1, HASH_BYTES));
    byte[] data = new byte[bytes];
    MemorySegment into = MemorySegment.ofArray(data);
    long section = PublishRequest.headerBytes();
    PublishRequest.writeHeader(into, 0, registrationId, generation, 1, HASH_BYTES, 1);
    PublishRequest.writeSection(into, section, 0, false, 0, 1);
    Memory.putLong(into, PublishRequest.hashAt(section, 0, HASH_BYTES), key);
    Memory.putInt(into, PublishRequest.pageAt(section, 0, 1, HASH_BYTES), 0);
    return data;
  }

  /** Asks for the prefix of blocks that {@link #publishData} names; returns the lease. */
  long lookup(long... keys) {
    byte[] data = new byte[(int) LookupRequest.byteSize(1, keys.length, HASH_BYTES)];
    MemorySegment into = MemorySegment.ofArray(data);
    LookupRequest.writeHeader(
        into, 0, LookupRequest.PREFIX, HASH_BYTES, 1, keys.length, 0, 0, 0, 1);
    MemorySegment.copy(
        MemorySegment.ofArray(namespace),
        0,
        into,
        LookupRequest.namespaceAt(0),
        Protocol.NAMESPACE_BYTES);
    for (int i = 0; i < keys.length; i++) {
      Memory.putLong(into, LookupRequest.hashesAt(1) + (long) i * HASH_BYTES, keys[i]);
    }
    write(ChannelDescriptor.QUERY_REQUESTS, command(Opcode.LOOKUP, 0), data);
    wake();
    if (answer() != Status.OK) {
      throw new AssertionError("lookup: " + reply.status);
    }
    MemorySegment found = Arena.ofAuto().allocate(Protocol.MAX_SPAN_BYTES, 8);
    queryReplyBytes.take(reply, found);
    return LookupReply.leaseId(found, LookupReply.leaseAt(0, 0, 1, keys.length));
  }

  /** Data of a restore of the one block of a lease, into page 0. */
  byte[] restoreData(long lease) {
    byte[] data = new byte[(int) (RestoreRequest.headerBytes() + RestoreRequest.sectionBytes(1))];
    MemorySegment into = MemorySegment.ofArray(data);
    long section = RestoreRequest.headerBytes();
    RestoreRequest.writeHeader(into, 0, registrationId, generation, 1, 1);
    RestoreRequest.writeSection(into, section, lease, 0, 1);
    Memory.putInt(into, RestoreRequest.pageAt(section, 0), 0);
    return data;
  }

  /** Reserves a record for a publish; returns its operation id. */
  long reserve(int slot) {
    return reserve(slot, GrantTable.PUBLISH);
  }

  /** Reserves a record; returns its operation id. */
  long reserve(int slot, int kind) {
    long word = table.tryReserve(slot, kind);
    return GrantWord.operationId(slot, GrantWord.generation(word));
  }

  GrantState state(int slot) {
    return GrantWord.state(table.wordAcquire(slot));
  }

  void awaitState(int slot, GrantState state) {
    eventually("record in " + state, () -> state(slot) == state);
  }

  /** Moves a record as a well-behaved engine does. */
  void move(int slot, GrantState next) {
    if (!table.tryEngineMove(slot, table.wordAcquire(slot), next)) {
      throw new AssertionError("record moved meanwhile");
    }
  }

  /** Goes through a granted operation on one block to its end. */
  void finish(int slot) {
    awaitState(slot, GrantState.GRANTED);
    move(slot, GrantState.ACTIVE);
    finishActive(slot);
  }

  /** Goes from Active to the end of an operation on one block. */
  void finishActive(int slot) {
    table.setEngineResult(slot, Status.OK, 1, 1, 4096);
    move(slot, GrantState.DRAINED);
    table.markDirty(slot);
    wake();
    awaitState(slot, GrantState.REAPED);
  }

  /** Whether the Manager has ended the session. */
  boolean isClosed() {
    return Memory.getIntVolatile(channel, ChannelDescriptor.SESSION_STATE_OFFSET)
        == ChannelDescriptor.CLOSED;
  }

  @Override
  public void close() {
    client.close();
    managerWake.close();
    channelMapping.close();
    grantMapping.close();
  }
}
