package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Memory;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.ManagerFrame;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Messages that are lost, late, repeated or nonsense: each has one outcome, and none is noticed by
 * the neighbour.
 */
@Timeout(60)
class LostMessageTest {
  private static final int QUERIES = ChannelDescriptor.QUERY_REQUESTS;
  private static final int PUBLISHES = ChannelDescriptor.PUBLISH_REQUESTS;

  @TempDir private Path directory;
  private Manager manager;
  private Path socket;

  @BeforeEach
  void startManager() {
    socket = directory.resolve("manager.sock");
    manager =
        Manager.start(
            ManagerConfig.builder(socket, 16L << 20)
                .httpAddr(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .drainTimeout(Duration.ofSeconds(2))
                .build());
    manager.awaitReady(Duration.ofSeconds(20));
  }

  @AfterEach
  void stopManager() {
    manager.close();
  }

  private JsonNode status() {
    return JsonMapper.shared().readTree(manager.statusJson());
  }

  private long stale() {
    return status().get("stale_commands_total").asLong();
  }

  private void awaitSettled() {
    RawEngine.eventually(
        "nothing left of the session",
        () ->
            status().get("session_list").isEmpty()
                && status().get("pool_used_bytes").asLong()
                    == status().get("resident_bytes").asLong());
  }

  @Test
  void shouldFindACommandWhoseWakeIsLost() {
    try (RawEngine engine = new RawEngine(socket, "good")) {
      RawEngine.eventually(
          "the Manager asleep",
          () ->
              Memory.getIntVolatile(engine.channel, ChannelDescriptor.MANAGER_SLEEPS_OFFSET) != 0);
      engine.write(QUERIES, engine.command(Opcode.PING, 0));
      assertThat(engine.answer()).isEqualTo(Status.OK);
    }
  }

  @Test
  void shouldFindADrainWhoseDirtyBitIsLost() {
    try (RawEngine engine = new RawEngine(socket, "good")) {
      engine.write(
          PUBLISHES, engine.command(Opcode.PUBLISH, engine.reserve(3)), engine.publishData(1));
      engine.wake();
      engine.awaitState(3, GrantState.GRANTED);
      engine.move(3, GrantState.ACTIVE);
      engine.table.setEngineResult(3, Status.OK, 1, 1, 4096);
      engine.move(3, GrantState.DRAINED);
      engine.awaitState(3, GrantState.REAPED);
      assertThat(engine.table.stored(3)).isEqualTo(1);
    }
  }

  @Test
  void shouldExecuteARepeatedCommandOnce() {
    try (RawEngine engine = new RawEngine(socket, "good")) {
      long before = stale();
      Command command = engine.command(Opcode.PUBLISH, engine.reserve(3));
      engine.write(PUBLISHES, command, engine.publishData(1));
      engine.write(PUBLISHES, command, engine.publishData(1));
      engine.wake();
      engine.finish(3);
      engine.write(PUBLISHES, command, engine.publishData(1)); // late, too
      engine.wake();
      RawEngine.eventually("two dropped commands", () -> stale() == before + 2);
      assertThat(engine.state(3)).isEqualTo(GrantState.REAPED);
      assertThat(engine.table.stored(3)).isEqualTo(1);
      assertThat(status().get("resident_blocks").asInt()).isEqualTo(1);
    }
  }

  @Test
  void shouldDropACommandOfAnEarlierGeneration() {
    try (RawEngine engine = new RawEngine(socket, "good")) {
      long first = engine.reserve(3);
      engine.move(3, GrantState.ACKNOWLEDGED);
      long second = engine.reserve(3);
      assertThat(GrantWord.generationOf(second)).isEqualTo(GrantWord.generationOf(first) + 1);
      long before = stale();
      engine.write(PUBLISHES, engine.command(Opcode.PUBLISH, first), engine.publishData(1));
      engine.wake();
      RawEngine.eventually("the dropped command", () -> stale() == before + 1);
      assertThat(engine.state(3)).as("another's record").isEqualTo(GrantState.RESERVED);
      engine.write(PUBLISHES, engine.command(Opcode.PUBLISH, second), engine.publishData(1));
      engine.wake();
      engine.finish(3);
    }
  }

  @Test
  void shouldRefuseACommandOfAnotherEpochAndGoOn() {
    try (RawEngine engine = new RawEngine(socket, "good")) {
      Command command = engine.command(Opcode.PING, 0);
      command.epoch++;
      engine.write(QUERIES, command);
      engine.wake();
      assertThat(engine.answer()).isEqualTo(Status.EPOCH_MISMATCH);
      long id = engine.reserve(3);
      Command publish = engine.command(Opcode.PUBLISH, id);
      publish.epoch++;
      engine.write(PUBLISHES, publish, engine.publishData(1));
      engine.ping();
      assertThat(engine.state(3)).as("not claimed").isEqualTo(GrantState.RESERVED);
      assertThat(engine.isClosed()).isFalse();
    }
  }

  @Test
  void shouldRefuseAForeignTokenAndGoOn() {
    try (RawEngine engine = new RawEngine(socket, "good");
        RawEngine other = new RawEngine(socket, "other")) {
      ByteString own = engine.client.token;
      engine.client.token = other.client.token;
      ManagerFrame answer = engine.client.register(4096, true);
      assertThat(answer.getFailure().getCode()).isEqualTo(Status.FORBIDDEN.code());
      engine.client.token = own;
      engine.ping();
      other.ping();
    }
  }

  @Test
  void shouldEndAConnectionThatConfirmsWithAForeignToken() {
    try (RawEngine good = new RawEngine(socket, "good");
        RawClient bad = new RawClient(socket)) {
      bad.handshake();
      bad.token = good.client.token;
      assertThat(bad.confirm().getFailure().getCode()).isEqualTo(Status.FORBIDDEN.code());
      assertThat(bad.receive()).isNull();
      good.ping();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "opcode, 99, 0",
    "opcode, 0, 0",
    "lookup, 2, 16",
    "restore, 3, 16",
    "restore, 3, 40",
    "publish, 4, 16",
    "publish, 4, 100",
    "empty lookup, 2, 0",
    "empty restore, 3, 0",
    "empty publish, 4, 0"
  })
  void shouldCloseASessionThatSendsNonsenseWithoutItsNeighbourNoticing(
      String what, int opcode, int bytes) {
    try (RawEngine good = new RawEngine(socket, "good")) {
      try (RawEngine bad = new RawEngine(socket, "bad")) {
        byte[] data = new byte[bytes];
        new Random(opcode * 1000L + bytes).nextBytes(data);
        Command command = bad.command(opcode, bad.reserve(3));
        if (bytes == 0) {
          bad.write(QUERIES, command);
        } else {
          bad.write(QUERIES, command, data);
        }
        bad.wake();
        RawEngine.eventually(what + " ends its session", bad::isClosed);
        assertThat(bad.client.receive()).isNull();
      }
      good.ping();
      good.write(PUBLISHES, good.command(Opcode.PUBLISH, good.reserve(0)), good.publishData(7));
      good.wake();
      good.finish(0);
      assertThat(good.isClosed()).isFalse();
    }
    awaitSettled();
    assertThat(manager.counters().sessionsEnded(SessionEnd.VIOLATION)).isEqualTo(1);
    assertThat(manager.counters().internalErrors()).isZero();
  }

  @Test
  void shouldCloseASessionThatSpeaksAnotherVersion() {
    try (RawEngine bad = new RawEngine(socket, "bad")) {
      Command command = bad.command(Opcode.PING, 0);
      command.version = Protocol.CHANNEL_VERSION + 1;
      bad.write(QUERIES, command);
      bad.wake();
      RawEngine.eventually("end of the session", bad::isClosed);
    }
  }

  @Test
  void shouldAnswerWhatNamesNothingItKnows() {
    try (RawEngine engine = new RawEngine(socket, "good")) {
      engine.write(QUERIES, engine.command(Opcode.RELEASE, 0x7fff_1234_5678L));
      engine.wake();
      assertThat(engine.answer()).isEqualTo(Status.LEASE_ENDED);
      engine.write(QUERIES, engine.command(Opcode.CANCEL_QUERY, 0x1234_5678L));
      engine.wake();
      assertThat(engine.answer()).isEqualTo(Status.OK);
    }
  }

  /** Scribbles over all that a session shares, while commands and grants of both are in flight. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void shouldServeOthersWhileASessionScribbles(long seed) {
    Random random = new Random(seed);
    try (RawEngine good = new RawEngine(socket, "good")) {
      try (RawEngine bad = new RawEngine(socket, "bad")) {
        for (int slot = 0; slot < 8; slot++) {
          bad.write(
              PUBLISHES,
              bad.command(Opcode.PUBLISH, bad.reserve(slot)),
              bad.publishData(1000 * seed + slot));
        }
        bad.wake();
        for (int round = 0; round < 50; round++) {
          scribble(random, bad.channel, 256, ChannelDescriptor.REGION_BYTES);
          scribble(random, bad.table.memory(), 128, GrantTable.REGION_BYTES);
          bad.table.markDirty(random.nextInt(GrantTable.RECORDS));
          bad.wake();
          good.ping();
        }
        int slot = (int) (seed % 4);
        good.write(
            PUBLISHES, good.command(Opcode.PUBLISH, good.reserve(slot)), good.publishData(-seed));
        good.wake();
        good.finish(slot);
        assertThat(good.table.stored(slot)).isEqualTo(1);
      }
      assertThat(good.isClosed()).isFalse();
      assertThat(manager.counters().internalErrors()).isZero();
    }
  }

  /** Writes random words near the start, where the headers and records are, and anywhere. */
  private static void scribble(Random random, MemorySegment memory, long from, long to) {
    for (int i = 0; i < 200; i++) {
      long end = random.nextBoolean() ? Math.min(to, 300_000) : to;
      long at = (from + random.nextLong(end - from - 8)) & -8L;
      Memory.putLong(memory, at, random.nextBoolean() ? random.nextLong() : random.nextInt(16));
    }
  }
}
