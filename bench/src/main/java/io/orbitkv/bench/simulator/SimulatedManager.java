package io.orbitkv.bench.simulator;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.SleepFlag;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreException;
import io.orbitkv.core.CoreOutput;
import io.orbitkv.core.RegistrationRequest;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** The real core, and the duties of the control thread around it, one turn at a time. */
final class SimulatedManager implements CoreOutput {
  static final long EPOCH = 5;

  private static final int SLAB_BYTES = 16 << 10;
  private static final int ARENAS = 2;
  private static final long ARENA_BYTES = 8 * SLAB_BYTES;
  private static final int PART_ENTRIES = 16;
  private static final long LEASE_AGE_NS = 20_000_000_000L;
  private static final long TICK_NS = 1_000_000;
  private static final long RECHECK_NS = 100_000_000;
  private static final long SLEEP_NS = 100_000_000;
  private static final long BUSY_SLEEP_NS = 1_000_000;
  private static final int COMMANDS_A_ROUND = 64;

  private record Event(Link link, boolean exit) {}

  private final World world;
  final CacheCore core;
  final MemorySegment[] arenas = new MemorySegment[ARENAS];
  private final Link[] bySlot = new Link[Protocol.MAX_SESSIONS];
  private final List<Link> links = new ArrayList<>();
  private final List<Event> events = new ArrayList<>();
  private final Command command = new Command();
  private final MemorySegment data;
  private final Sleeper sleeper;
  private long restoreWakes;
  private long publishWakes;
  private long settled;
  private long lastTickNs;
  private long lastRecheckNs;

  SimulatedManager(World world, Regions regions, SimulatedDisk disk) {
    this.world = world;
    this.sleeper = new Sleeper(world);
    this.data = regions.take(Protocol.MAX_SPAN_BYTES);
    long[] arenaBytes = new long[ARENAS];
    for (int i = 0; i < ARENAS; i++) {
      arenas[i] = regions.take(ARENA_BYTES);
      arenaBytes[i] = ARENA_BYTES;
    }
    long pool = ARENAS * ARENA_BYTES;
    CoreConfig config =
        new CoreConfig(
            arenaBytes,
            SLAB_BYTES,
            pool * 3 / 4,
            pool / 2,
            LEASE_AGE_NS,
            PART_ENTRIES,
            regions::take);
    core = new CacheCore(config, EPOCH, this, disk.config(), disk);
    disk.attach(core, arenas);
  }

  Sleeper sleeper() {
    return sleeper;
  }

  // ---- turns ----

  /** One turn: serves one session, or all where everybody is to get on; returns work done. */
  int turn(long bits, boolean all) {
    if (sleeper.isAsleep() && !sleeper.isDue()) {
      return 0;
    }
    if (!sleeper.isAwake()) {
      return endSleep();
    }
    int work = 0;
    if (all) {
      work = round();
    } else if (!links.isEmpty()) {
      Link link = links.get((int) (bits % links.size()));
      work = serve(link, 1 + (int) (bits >>> 32 & 3)) + duties();
    }
    return work;
  }

  /** Announces a sleep; the next turn looks once more. */
  void announceSleep() {
    if (sleeper.isAwake()) {
      links.forEach(link -> announce(link, 1));
      SleepFlag.fence();
      sleeper.announce();
      world.note(() -> "the Manager announces its sleep");
    }
  }

  private int endSleep() {
    boolean wasAsleep = sleeper.isAsleep();
    int work = wasAsleep || !world.variant.looksAgain() ? 0 : round();
    if (wasAsleep || work > 0 || sleeper.isSignalled()) {
      sleeper.awake();
      links.forEach(link -> announce(link, 0));
      return work + 1;
    }
    long longest = core.ssdIsBusy() ? BUSY_SLEEP_NS : SLEEP_NS;
    sleeper.sleepUntil(world.variant.looksAgain() ? world.now + longest : Sleeper.NEVER);
    world.note(() -> "the Manager sleeps");
    return 1;
  }

  private static void announce(Link link, int sleeps) {
    SleepFlag.set(link.channel, ChannelDescriptor.MANAGER_SLEEPS_OFFSET, sleeps);
  }

  private int round() {
    int work = duties();
    for (int i = links.size() - 1; i >= 0; i--) {
      work += serve(links.get(i), COMMANDS_A_ROUND);
    }
    return work;
  }

  private int serve(Link link, int commands) {
    int work = serveRing(link, link.query, commands);
    work += serveRing(link, link.publish, commands);
    world.beginCall();
    work += core.pollGrants(link.slot, world.now);
    called();
    return work;
  }

  private int serveRing(Link link, Link.RingPair rings, int commands) {
    int work = 0;
    while (work < commands && link.open && rings.hasWork()) {
      int length = rings.take(command, data);
      world.beginCall();
      core.execute(link.slot, rings.requestRing, command, data, length, world.now);
      world.variant.afterCommand().executed(core, link.slot, command.opcode, command.scalar0);
      called();
      work++;
    }
    return work;
  }

  /** What is due whichever session is served. */
  private int duties() {
    int work = 0;
    if (world.now - lastTickNs >= TICK_NS) {
      lastTickNs = world.now;
      world.beginCall();
      core.tick(world.now);
      called();
    }
    if (world.variant.looksAgain() && world.now - lastRecheckNs >= RECHECK_NS) {
      lastRecheckNs = world.now;
      for (int i = links.size() - 1; i >= 0; i--) {
        world.beginCall();
        work += core.recheckGrants(links.get(i).slot, world.now);
        called();
      }
    }
    return work + core.ssdStep(world.now);
  }

  /** After each call of the core: wakes engines, lets settled sessions go, looks at the rules. */
  private void called() {
    world.endCall();
    if ((restoreWakes | publishWakes) != 0) {
      SleepFlag.fence();
      wake(restoreWakes, ChannelDescriptor.RESTORE_SLEEPS_OFFSET);
      wake(publishWakes, ChannelDescriptor.PUBLISH_SLEEPS_OFFSET);
      restoreWakes = 0;
      publishWakes = 0;
    }
    world.checkSources();
    for (; settled != 0; settled &= settled - 1) {
      int slot = Long.numberOfTrailingZeros(settled);
      links.remove(bySlot[slot]);
      bySlot[slot] = null;
    }
  }

  private void wake(long slots, long announcement) {
    for (; slots != 0; slots &= slots - 1) {
      Link link = bySlot[Long.numberOfTrailingZeros(slots)];
      if (link != null && SleepFlag.isAnnounced(link.channel, announcement)) {
        link.agent.signal();
      }
    }
  }

  // ---- sessions ----

  /** Opens a session for an engine; null when every slot is in use. */
  Link connect(SimulatedEngine engine, Regions regions) {
    int slot = core.reserveSlot();
    if (slot < 0) {
      return null;
    }
    MemorySegment channel = regions.take(ChannelDescriptor.REGION_BYTES);
    MemorySegment grants = regions.take(GrantTable.REGION_BYTES);
    Link link = new Link(world, slot, engine, channel, grants, sleeper::signal);
    core.openSession(
        slot, link.managerTable, engine.instance(), "simulated", engine.process(), true, world.now);
    bySlot[slot] = link;
    links.add(link);
    if (!sleeper.isAwake()) {
      announce(link, 1);
      sleeper.signal();
    }
    return link;
  }

  /** Registers the engine's pages; false when the instance is held. */
  boolean register(Link link) {
    int namespace = link.engine.namespace;
    try {
      CacheCore.RegistrationId id =
          core.register(
              link.slot,
              new RegistrationRequest(
                  Blocks.digest(namespace),
                  Blocks.HASH_BYTES,
                  0,
                  0,
                  0,
                  List.of(
                      new RegistrationRequest.Group(
                          0, Blocks.blockBytes(namespace), SimulatedEngine.PAGES)),
                  false,
                  link.engine.exitProves()),
              world.now);
      core.confirmMappings(link.slot, id.id(), id.generation());
      link.registrationId = id.id();
      link.registrationGeneration = id.generation();
      link.registered = true;
      return true;
    } catch (CoreException e) { // the former process is not known to be gone
      return false;
    }
  }

  void unregister(Link link) {
    if (bySlot[link.slot] != link) {
      return;
    }
    link.unregistering = true;
    world.beginCall();
    core.unregister(link.slot, link.registrationId, link.registrationGeneration, world.now);
    called();
  }

  /** Closes admission. */
  void stop() {
    world.beginCall();
    core.beginStop(world.now);
    called();
  }

  /** A socket has ended, or a process has exited; the Manager learns it later. */
  void happened(Link link, boolean exit) {
    events.add(new Event(link, exit));
  }

  /** Learns one thing that happened; false when there is nothing. */
  boolean learn(long bits) {
    if (events.isEmpty()) {
      return false;
    }
    Event event = events.remove((int) (bits % events.size()));
    Link link = event.link();
    if (bySlot[link.slot] != link) {
      return true;
    }
    world.note(() ->
        "the Manager learns: " + (event.exit() ? "exit" : "socket end") + ", slot " + link.slot);
    close(link);
    world.beginCall();
    if (event.exit()) {
      core.processExited(link.slot, world.now);
    } else {
      core.sessionLost(link.slot, world.now);
    }
    called();
    link.grantsAreOver();
    return true;
  }

  /** Learns all that happened. */
  void learnAll() {
    boolean learnt = true;
    while (learnt) {
      learnt = learn(0);
    }
  }

  private static void close(Link link) {
    if (link.open) {
      link.open = false;
      Memory.putIntVolatile(
          link.channel, ChannelDescriptor.SESSION_STATE_OFFSET, ChannelDescriptor.CLOSED);
      link.agent.signal();
    }
  }

  // ---- effects of the core ----

  @Override
  public void reply(int session, int ring, Command reply) {
    boolean written = bySlot[session].byReplyRing(ring).replies.tryWrite(reply);
    if (!written && ring != ChannelDescriptor.PUBLISH_REPLIES) {
      throw new IllegalStateException("reply ring=" + ring + " has no room");
    }
    if (ring == ChannelDescriptor.PUBLISH_REPLIES) {
      wakePublish(session);
    } else {
      wakeRestore(session);
    }
  }

  @Override
  public ByteRing.Producer replyBytes(int session, int ring) {
    return bySlot[session].byReplyRing(ring).replyBytes;
  }

  @Override
  public void wakeRestore(int session) {
    restoreWakes |= 1L << session;
  }

  @Override
  public void wakePublish(int session) {
    publishWakes |= 1L << session;
  }

  @Override
  public void sessionSettled(int session) {
    bySlot[session].settled = true;
    settled |= 1L << session;
  }

  @Override
  public void unregistered(int session, int registrationId) {
    Link link = bySlot[session];
    link.registered = false;
    link.unregistering = false;
  }

  @Override
  public void violation(int session, String what) {
    throw new Violation(Rule.PROTOCOL, "session slot " + session + ": " + what);
  }
}
