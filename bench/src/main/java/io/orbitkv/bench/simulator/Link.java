package io.orbitkv.bench.simulator;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.SteppedLookup;
import io.orbitkv.client.SteppedSession;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * One session: its shared memory, what the Manager's edge knows of it, and what the engine does.
 */
final class Link {
  /** A lookup that was submitted. */
  record Look(
      SteppedLookup lookup,
      int chain,
      LookupRequestSpec.Mode mode,
      boolean hoards,
      int clears,
      long atNs) {}

  /** A lease that the engine may use, and the positions of the chain that it covers. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  record Held(Lease lease, int chain, int[] positions) {}

  /** Requests of one kind and their replies, at the Manager's end. */
  static final class RingPair {
    final int requestRing;
    final CommandRing.Consumer requests;
    final CommandRing.Producer replies;
    final ByteRing.Producer replyBytes;
    private final ByteRing.Consumer requestBytes;

    RingPair(MemorySegment channel, int requestRing, int replyRing) {
      this.requestRing = requestRing;
      this.requests = new CommandRing.Consumer(channel, requestRing);
      this.requestBytes = new ByteRing.Consumer(channel, requestRing);
      this.replies = new CommandRing.Producer(channel, replyRing);
      this.replyBytes = new ByteRing.Producer(channel, replyRing);
    }

    boolean hasWork() {
      return requests.hasNext() && replies.hasRoom() && replyBytes.hasRoom(Protocol.MAX_SPAN_BYTES);
    }

    int take(Command command, MemorySegment data) {
      requests.tryRead(command);
      return requestBytes.take(command, data);
    }
  }

  final int slot;
  final SimulatedEngine engine;
  final MemorySegment channel;
  final GrantTable managerTable;
  final RingPair query;
  final RingPair publish;
  final SteppedSession session;
  final Sleeper agent;

  /** The Manager takes commands. */
  boolean open = true;

  /** The core has let go of the slot. */
  boolean settled;

  boolean registered;
  boolean unregistering;
  int registrationId;
  int registrationGeneration;

  final List<SimulatedOperation> operations = new ArrayList<>();
  final List<Look> looks = new ArrayList<>();
  final List<Held> leases = new ArrayList<>();

  /** The operation that was settled last, for a late command. */
  SimulatedOperation lastSettled;

  Link(
      World world,
      int slot,
      SimulatedEngine engine,
      MemorySegment channel,
      MemorySegment grants,
      Runnable managerWake) {
    this.slot = slot;
    this.engine = engine;
    this.channel = channel;
    ChannelDescriptor.format(channel, 0, SimulatedManager.EPOCH, slot);
    GrantTable.format(grants);
    this.managerTable = world.variant.managerTable().apply(grants, () -> world.between(this));
    this.query =
        new RingPair(channel, ChannelDescriptor.QUERY_REQUESTS, ChannelDescriptor.QUERY_REPLIES);
    this.publish =
        new RingPair(
            channel, ChannelDescriptor.PUBLISH_REQUESTS, ChannelDescriptor.PUBLISH_REPLIES);
    this.session =
        new SteppedSession(
            channel,
            world.variant.engineTable().apply(grants),
            SimulatedManager.EPOCH,
            managerWake);
    this.agent = new Sleeper(world);
  }

  RingPair byReplyRing(int ring) {
    return ring == ChannelDescriptor.PUBLISH_REPLIES ? publish : query;
  }

  /** The agent says, or takes back, that it sleeps. */
  void announceAgent(int sleeps) {
    SleepFlag.set(channel, ChannelDescriptor.RESTORE_SLEEPS_OFFSET, sleeps);
    SleepFlag.set(channel, ChannelDescriptor.PUBLISH_SLEEPS_OFFSET, sleeps);
    SleepFlag.fence();
  }

  /** The session, or its registration, is over for the Manager: nothing more is granted. */
  void grantsAreOver() {
    operations.forEach(SimulatedOperation::grantsAreOver);
  }

  /** True when the engine has nothing left to do here. */
  boolean isIdle() {
    return operations.isEmpty() && looks.isEmpty();
  }
}
