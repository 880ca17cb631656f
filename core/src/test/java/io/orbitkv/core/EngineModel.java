package io.orbitkv.core;

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
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.PublishRequest;
import io.orbitkv.channel.RestoreRequest;
import io.orbitkv.channel.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A plain engine on plain memory: drives the engine's side of one session step by step, under a
 * test's control.
 */
final class EngineModel {
  /** One restore or publish as the engine sees it. */
  static final class Op {
    final int slot;
    final long generation;
    final boolean publish;
    final List<Long> keys;
    boolean copied;
    boolean over;

    /** Entries of all parts that were copied. */
    int entriesDone;

    Op(int slot, long generation, boolean publish, List<Long> keys) {
      this.slot = slot;
      this.generation = generation;
      this.publish = publish;
      this.keys = keys;
    }
  }

  /** A lease as the engine sees it. */
  record Held(long id, List<Long> keys) {}

  final CacheCore core;
  final int slot;
  final GrantTable table;
  final ByteRing.Producer queryReplies;
  final ByteRing.Producer publishReplies;
  final byte[] namespace;
  final ByteRing.Consumer queryReader;
  final ByteRing.Consumer publishReader;
  int kind;
  final int registrationId;
  final int generation;
  final List<Op> ops = new ArrayList<>();
  final Map<Long, Long> copies;
  private final MemorySegment channel;
  private final MemorySegment data = Arena.ofAuto().allocate(4 << 20, 8);
  private final Command command = new Command();
  private final long epoch;
  Command lastReply;

  /** Outcome of the last lookup that was answered. */
  int lastOutcome;

  EngineModel(
      CacheCore core,
      int slot,
      String instance,
      byte[] namespace,
      List<RegistrationRequest.Group> groups,
      long epoch,
      Map<Long, Long> arenaContent) {
    this(core, slot, instance, namespace, groups, epoch, arenaContent, true, true);
  }

  /** An engine whose end may not be observed, or may prove nothing. */
  EngineModel(
      CacheCore core,
      int slot,
      String instance,
      byte[] namespace,
      List<RegistrationRequest.Group> groups,
      long epoch,
      Map<Long, Long> arenaContent,
      boolean isObserved,
      boolean exitProves) {
    this.core = core;
    this.slot = slot;
    this.epoch = epoch;
    this.copies = arenaContent;
    this.namespace = namespace;
    this.channel = Arena.ofAuto().allocate(ChannelDescriptor.REGION_BYTES, 64);
    this.table = GrantTable.format(Arena.ofAuto().allocate(GrantTable.REGION_BYTES, 64));
    this.queryReplies = new ByteRing.Producer(channel, ChannelDescriptor.QUERY_REPLIES);
    this.publishReplies = new ByteRing.Producer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    this.queryReader = new ByteRing.Consumer(channel, ChannelDescriptor.QUERY_REPLIES);
    this.publishReader = new ByteRing.Consumer(channel, ChannelDescriptor.PUBLISH_REPLIES);
    core.openSession(slot, table, instance, "client " + slot, 1000 + slot, isObserved, 0);
    CacheCore.RegistrationId id =
        core.register(
            slot, new RegistrationRequest(namespace, 32, slot, 0, 0, groups, false, exitProves), 0);
    core.confirmMappings(slot, id.id(), id.generation());
    this.registrationId = id.id();
    this.generation = id.generation();
  }

  static void putHash(MemorySegment into, long at, long key) {
    Memory.putLong(into, at, key * 0x9e37_79b9_7f4a_7c15L);
    Memory.putLong(into, at + 8, key);
    Memory.putLong(into, at + 16, ~key);
    Memory.putLong(into, at + 24, 7);
  }

  /** Looks keys up and returns the leased ones; null when nothing was leased. */
  Held lookup(List<Long> keys, int mode, long nowNs) {
    return lookup(keys, mode, 0, 0, nowNs);
  }

  /** As {@link #lookup(List, int, long)}, with an identity; null also when it was refused. */
  Held lookup(List<Long> keys, int mode, long queryId, int revision, long nowNs) {
    LookupRequest.writeHeader(data, 0, mode, 32, 1, keys.size(), queryId, revision, 0, 1);
    MemorySegment.copy(MemorySegment.ofArray(namespace), 0, data, LookupRequest.namespaceAt(0), 32);
    for (int i = 0; i < keys.size(); i++) {
      putHash(data, LookupRequest.hashesAt(1) + 32L * i, keys.get(i));
    }
    send(
        ChannelDescriptor.QUERY_REQUESTS,
        Opcode.LOOKUP,
        0,
        (int) LookupRequest.byteSize(1, keys.size(), 32),
        nowNs);
    if (lastReply.status != Status.OK.code()) {
      return null;
    }
    MemorySegment reply = takeReply(ChannelDescriptor.QUERY_REPLIES);
    lastOutcome = LookupReply.outcome(reply, 0);
    long group = LookupReply.groupAt(0, 0, keys.size());
    List<Long> found = new ArrayList<>();
    for (int i = 0; i < keys.size(); i++) {
      if ((LookupReply.bits(reply, group, i >> 6) & 1L << i) != 0) {
        found.add(keys.get(i));
      }
    }
    if (LookupReply.leases(reply, 0) == 0) {
      return mode == LookupRequest.CANDIDATES ? new Held(0, found) : null;
    }
    return new Held(LookupReply.leaseId(reply, LookupReply.leaseAt(0, 0, 1, keys.size())), found);
  }

  private MemorySegment takeReply(int ring) {
    MemorySegment into = Arena.ofAuto().allocate(4 << 20, 8);
    (ring == ChannelDescriptor.QUERY_REPLIES ? queryReader : publishReader).take(lastReply, into);
    return into;
  }

  /** Takes the data of a publish reply, so that the ring has room for the next. */
  void takePublishReply() {
    takeReply(ChannelDescriptor.PUBLISH_REPLIES);
  }

  Status release(long lease, long nowNs) {
    send(ChannelDescriptor.QUERY_REQUESTS, Opcode.RELEASE, lease, 0, nowNs);
    return Status.of(lastReply.status);
  }

  /** Sends a restore of all blocks of a lease after the first {@code skip}. */
  Op restore(Held lease, int skip, long nowNs) {
    List<Long> keys = lease.keys().subList(skip, lease.keys().size());
    RestoreRequest.writeHeader(data, 0, registrationId, generation, 1, keys.size());
    long section = RestoreRequest.headerBytes();
    RestoreRequest.writeSection(data, section, lease.id(), skip, keys.size());
    for (int i = 0; i < keys.size(); i++) {
      Memory.putInt(data, RestoreRequest.pageAt(section, i), i);
    }
    int length = (int) (section + RestoreRequest.sectionBytes(keys.size()));
    return begin(false, keys, length, ChannelDescriptor.QUERY_REQUESTS, Opcode.RESTORE, nowNs);
  }

  /** Sends a restore that names a lease of one block two times. */
  Op restoreTwice(Held lease, long nowNs) {
    RestoreRequest.writeHeader(data, 0, registrationId, generation, 2, 2);
    long section = RestoreRequest.headerBytes();
    for (int page = 0; page < 2; page++) {
      RestoreRequest.writeSection(data, section, lease.id(), 0, 1);
      Memory.putInt(data, RestoreRequest.pageAt(section, 0), page);
      section += RestoreRequest.sectionBytes(1);
    }
    List<Long> keys = List.of(lease.keys().getFirst(), lease.keys().getFirst());
    return begin(
        false, keys, (int) section, ChannelDescriptor.QUERY_REQUESTS, Opcode.RESTORE, nowNs);
  }

  /** Sends a publish of a chain whose first block has the given parent, -1 for none. */
  Op publish(List<Long> keys, long parent, int position, long nowNs) {
    PublishRequest.writeHeader(data, 0, registrationId, generation, 1, 32, keys.size());
    long section = PublishRequest.headerBytes();
    PublishRequest.writeSection(data, section, 0, parent >= 0, position, keys.size());
    if (parent >= 0) {
      putHash(data, PublishRequest.parentAt(section), parent);
    }
    for (int i = 0; i < keys.size(); i++) {
      putHash(data, PublishRequest.hashAt(section, i, 32), keys.get(i));
      Memory.putInt(data, PublishRequest.pageAt(section, i, keys.size(), 32), i);
    }
    int length = (int) (section + PublishRequest.sectionBytes(keys.size(), 32));
    return begin(true, keys, length, ChannelDescriptor.PUBLISH_REQUESTS, Opcode.PUBLISH, nowNs);
  }

  /** Sends a publish of one chain in each of the groups 0, 1 and so on. */
  Op publishGroups(List<List<Long>> chains, long nowNs) {
    int blocks = chains.stream().mapToInt(List::size).sum();
    PublishRequest.writeHeader(data, 0, registrationId, generation, chains.size(), 32, blocks);
    long section = PublishRequest.headerBytes();
    List<Long> all = new ArrayList<>();
    for (int group = 0; group < chains.size(); group++) {
      List<Long> keys = chains.get(group);
      PublishRequest.writeSection(data, section, group, false, 0, keys.size());
      for (int i = 0; i < keys.size(); i++) {
        putHash(data, PublishRequest.hashAt(section, i, 32), keys.get(i));
        Memory.putInt(data, PublishRequest.pageAt(section, i, keys.size(), 32), all.size() + i);
      }
      all.addAll(keys);
      section += PublishRequest.sectionBytes(keys.size(), 32);
    }
    return begin(
        true, all, (int) section, ChannelDescriptor.PUBLISH_REQUESTS, Opcode.PUBLISH, nowNs);
  }

  Status cancelQuery(long queryId, long nowNs) {
    send(ChannelDescriptor.QUERY_REQUESTS, Opcode.CANCEL_QUERY, queryId, 0, nowNs);
    return Status.of(lastReply.status);
  }

  private Op begin(boolean publish, List<Long> keys, int length, int ring, int opcode, long nowNs) {
    for (int record = 0; record < GrantTable.RECORDS; record++) {
      long word = table.tryReserve(record, publish ? GrantTable.PUBLISH : GrantTable.RESTORE);
      if (word >= 0) {
        Op op = new Op(record, GrantWord.generation(word), publish, List.copyOf(keys));
        ops.add(op);
        send(ring, opcode, GrantWord.operationId(record, op.generation), length, nowNs);
        return op;
      }
    }
    throw new AssertionError("no free record");
  }

  /** Repeats a command whose data may be stale: the core must drop it. */
  void sendStale(Op op, long nowNs) {
    int ring = op.publish ? ChannelDescriptor.PUBLISH_REQUESTS : ChannelDescriptor.QUERY_REQUESTS;
    PublishRequest.writeHeader(data, 0, registrationId, generation, 1, 32, 1);
    if (op.publish) {
      PublishRequest.writeSection(data, PublishRequest.headerBytes(), 0, false, 0, 1);
      int length = (int) (PublishRequest.headerBytes() + PublishRequest.sectionBytes(1, 32));
      send(ring, Opcode.PUBLISH, GrantWord.operationId(op.slot, op.generation), length, nowNs);
    }
  }

  private void send(int ring, int opcode, long scalar, int length, long nowNs) {
    command.set(opcode, 0, 1, epoch, scalar, 0);
    core.execute(slot, ring, command, data, length, nowNs);
  }

  GrantState state(Op op) {
    long word = table.wordAcquire(op.slot);
    return GrantWord.generation(word) == op.generation ? GrantWord.state(word) : null;
  }

  private boolean move(Op op, GrantState next) {
    return table.tryEngineMove(op.slot, table.wordAcquire(op.slot), next);
  }

  /** Makes the next move that the engine would make; true when there was one. */
  boolean step(Op op) {
    GrantState state = state(op);
    switch (state) {
      case GRANTED -> {
        op.copied = false;
        move(op, GrantState.ACTIVE);
      }
      case ACTIVE -> {
        if (!op.copied) {
          copy(op);
        } else {
          drain(op);
        }
      }
      case REAPED -> {
        move(op, GrantState.ACKNOWLEDGED);
        op.over = true;
      }
      case null, default -> {
        return false;
      }
    }
    return true;
  }

  private void drain(Op op) {
    table.setEngineResult(op.slot, Status.OK, op.entriesDone, 1, 1);
    boolean more = GrantWord.part(table.wordAcquire(op.slot)) < table.parts(op.slot) - 1;
    move(op, more ? GrantState.PART_DRAINED : GrantState.DRAINED);
    table.markDirty(op.slot);
  }

  /** Cancels by the move that fits the state. */
  void cancel(Op op) {
    switch (state(op)) {
      case RESERVED -> {
        move(op, GrantState.ACKNOWLEDGED);
        op.over = true;
      }
      case PREPARING -> move(op, GrantState.CANCEL_REQUESTED);
      case GRANTED -> {
        move(op, GrantState.ACTIVE);
        drainCancelled(op);
      }
      case ACTIVE, PART_DRAINED -> drainCancelled(op);
      case null, default -> {}
    }
  }

  /** Ends an Active restore after it found other sums for some entries of its plan. */
  void drainDamaged(Op op, int... entries) {
    for (int entry : entries) {
      long at = GrantTable.bankAt(table.planOffset(op.slot)) + (long) entry * PlanEntry.BYTES;
      PlanEntry.putCrc(table.memory(), at, ~PlanEntry.crc(table.memory(), at));
    }
    table.setEngineResult(op.slot, Status.COPY_FAILED, 0, 1, 0);
    move(op, GrantState.DRAINED);
    table.markDirty(op.slot);
  }

  private void drainCancelled(Op op) {
    table.setEngineResult(op.slot, Status.CANCELLED, 0, 1, 0);
    move(op, GrantState.DRAINED);
    table.markDirty(op.slot);
  }

  /** Addresses of the plan, as {@code arena << 40 | offset}. */
  List<Long> plan(Op op) {
    List<Long> addresses = new ArrayList<>();
    long at = GrantTable.bankAt(table.planOffset(op.slot));
    for (int i = 0; i < table.planEntries(op.slot); i++, at += PlanEntry.BYTES) {
      addresses.add(
          (long) PlanEntry.arena(table.memory(), at) << 40 | PlanEntry.offset(table.memory(), at));
    }
    return addresses;
  }

  private void copy(Op op) {
    long at = GrantTable.bankAt(table.planOffset(op.slot));
    for (long address : plan(op)) {
      long key = op.keys.get(PlanEntry.page(table.memory(), at));
      if (op.publish) {
        copies.put(address, key);
        PlanEntry.putCrc(table.memory(), at, (int) key);
      } else if (copies.get(address) != key || PlanEntry.crc(table.memory(), at) != (int) key) {
        throw new AssertionError(
            "wrong bytes: key=" + key + ", found=" + copies.get(address) + ", address=" + address);
      }
      at += PlanEntry.BYTES;
      op.entriesDone++;
    }
    op.copied = true;
  }
}
