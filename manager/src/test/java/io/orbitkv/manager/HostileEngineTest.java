package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.Status;
import io.orbitkv.linux.Mapping;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * An engine that scribbles over its channel and its grant table, and sends commands of random bits,
 * while the Manager works on them. The Manager ends that session or bears it; no fault inside, and
 * an engine beside finds each byte of its blocks in its place.
 */
@Timeout(180)
class HostileEngineTest {
  private static final int POOL_BYTES = 16 << 20;
  private static final int BLOCK_BYTES = 4096;
  private static final int SESSIONS = 40;
  private static final int ACTS = 2_000;

  private final long seed = System.nanoTime();
  private final SplittableRandom random = new SplittableRandom(seed);
  private final List<Stored> stored = new ArrayList<>();

  @TempDir private Path directory;
  private Manager manager;
  private Path socket;

  /** A block of the good engine: its key, which is also its bytes, and its place in the arena. */
  private record Stored(long key, long offset) {}

  @BeforeEach
  void startManager() {
    socket = directory.resolve("manager.sock");
    manager =
        Manager.start(
            ManagerConfig.builder(socket, POOL_BYTES)
                .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .drainTimeout(Duration.ofSeconds(1))
                .build());
    manager.awaitReady(Duration.ofSeconds(30));
  }

  @AfterEach
  void stopManager() {
    manager.close();
  }

  @Test
  void shouldBearAnEngineThatScribbles() {
    try (RawEngine good = new RawEngine(socket, "good");
        Mapping arena =
            Mapping.map(good.client.fds.get(5), POOL_BYTES, Mapping.Access.READ_WRITE, false)) {
      int closed = 0;
      for (int i = 0; i < SESSIONS; i++) {
        try (RawEngine bad = new RawEngine(socket, "bad-" + i)) {
          closed += scribble(bad, i % 4) ? 1 : 0;
          publish(good, arena.segment(), 1_000 + i);
          check(good, arena.segment());
        }
      }
      assertThat(closed).as("sessions that were ended, seed=%d", seed).isPositive();
      good.ping();
      check(good, arena.segment());
      assertThat(manager.counters().internalErrors()).as("seed=%d", seed).isZero();
    }
  }

  /** Acts until the session is ended, or long enough; true when it was ended. */
  private boolean scribble(RawEngine bad, int kind) {
    for (int i = 0; i < ACTS && !bad.isClosed(); i++) {
      switch (kind) {
        case 0 -> scribbleOver(bad.channel);
        case 1 -> scribbleOver(bad.table.memory());
        case 2 -> sendNonsense(bad);
        default -> meddle(bad);
      }
      if (i % 16 == 0) {
        bad.wake();
      }
    }
    return bad.isClosed();
  }

  private void scribbleOver(MemorySegment region) {
    long at = random.nextLong(region.byteSize() / Long.BYTES) * Long.BYTES;
    Memory.putLong(region, at, random.nextInt(4) == 0 ? random.nextInt(256) : random.nextLong());
  }

  /** A command that may be nearly right. */
  private void sendNonsense(RawEngine bad) {
    int ring = random.nextBoolean() ? ChannelDescriptor.QUERY_REQUESTS : 2;
    Command command = bad.command(random.nextInt(-1, 12), random.nextLong());
    command.scalar1 = random.nextInt(2) == 0 ? random.nextLong() : random.nextInt(8);
    if (random.nextInt(4) == 0) {
      command.data(random.nextInt(), random.nextInt(), random.nextLong());
    }
    try {
      if (random.nextInt(3) == 0) {
        byte[] data = bad.publishData(random.nextLong());
        for (int i = random.nextInt(4); i > 0; i--) {
          data[random.nextInt(data.length)] = (byte) random.nextInt();
        }
        bad.write(ring, command, data);
      } else {
        bad.write(ring, command);
      }
    } catch (AssertionError e) {
      bad.wake(); // the ring is full: the Manager is behind, or waits for replies to be read
    }
  }

  /** Begins a publish as it must be, and then writes over its record, plan and result. */
  private void meddle(RawEngine bad) {
    int slot = random.nextInt(GrantTable.RECORDS);
    if (bad.state(slot) == GrantState.FREE || bad.state(slot) == GrantState.ACKNOWLEDGED) {
      long operation = bad.reserve(slot);
      try {
        bad.write(
            ChannelDescriptor.PUBLISH_REQUESTS,
            bad.command(Opcode.PUBLISH, operation),
            bad.publishData(random.nextLong()));
      } catch (AssertionError e) {
        bad.wake(); // full
      }
    }
    MemorySegment memory = bad.table.memory();
    long bank = GrantTable.bankAt(random.nextInt(GrantTable.BANK_BYTES / 64) * 8);
    Memory.putLong(memory, bank, random.nextLong());
    bad.table.setEngineResult(slot, Status.OK, random.nextInt(), random.nextLong(), -1);
    bad.table.markDirty(slot);
  }

  /** Publishes a block whose every word is its key. */
  private void publish(RawEngine good, MemorySegment arena, long key) {
    long operation = good.reserve(0);
    good.write(
        ChannelDescriptor.PUBLISH_REQUESTS,
        good.command(Opcode.PUBLISH, operation),
        good.publishData(key));
    good.wake();
    good.awaitState(0, GrantState.GRANTED);
    good.move(0, GrantState.ACTIVE);
    long plan = GrantTable.bankAt(good.table.planOffset(0));
    long offset = PlanEntry.offset(good.table.memory(), plan);
    for (long at = 0; at < BLOCK_BYTES; at += Long.BYTES) {
      Memory.putLong(arena, offset + at, key);
    }
    good.finishActive(0);
    assertThat(good.table.stored(0)).as("seed=%d", seed).isEqualTo(1);
    good.move(0, GrantState.ACKNOWLEDGED);
    stored.add(new Stored(key, offset));
  }

  private void check(RawEngine good, MemorySegment arena) {
    for (Stored block : stored) {
      for (long at = 0; at < BLOCK_BYTES; at += Long.BYTES) {
        assertThat(Memory.getLong(arena, block.offset + at))
            .as("key=%d, byte=%d, seed=%d", block.key, at, seed)
            .isEqualTo(block.key);
      }
    }
    assertThat(good.isClosed()).as("seed=%d", seed).isFalse();
  }
}
