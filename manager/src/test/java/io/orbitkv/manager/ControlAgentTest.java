package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantState;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.GrantWord;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Status;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.RegistrationRequest;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdStats;
import io.orbitkv.linux.Ids;
import io.orbitkv.storage.SsdStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Rounds of the control thread, gone through by the test at times of its choice. */
@Timeout(60)
class ControlAgentTest {
  private static final long POOL_BYTES = 8L << 20;
  private static final long SSD_BYTES = 64L << 20;
  private static final int BLOCK = 4096;
  private static final int PUBLISHES = ChannelDescriptor.PUBLISH_REQUESTS;

  @TempDir private Path directory;
  private final ManagerIdentity identity = ManagerIdentity.create(Ids.pid());
  private final Arena arena = Arena.ofShared();
  private final MetadataMappings metadata = new MetadataMappings();
  private final long beganNs = System.nanoTime();
  private SsdStore ssd;
  private ControlAgent agent;
  private SessionMemory memory;

  @BeforeEach
  void open() {
    ssd =
        SsdStore.open(
            List.of(directory),
            SSD_BYTES,
            SsdStore.Backend.AUTO,
            false,
            List.of(arena.allocate(POOL_BYTES, SsdStore.PAGE_BYTES)),
            () -> {});
    CoreConfig config =
        new CoreConfig(
            new long[] {POOL_BYTES},
            CoreConfig.slabBytesFor(POOL_BYTES),
            POOL_BYTES,
            POOL_BYTES,
            CoreConfig.DEFAULT_LEASE_AGE_NS,
            metadata);
    agent =
        new ControlAgent(
            config,
            identity.epochLow(),
            new EdgeCounters(),
            ssd.coreConfig(SsdConfig.WritePolicy.ALL, 0, 0),
            ssd);
    memory = SessionMemory.create(0, identity);
  }

  @AfterEach
  void close() {
    agent.close();
    ssd.close();
    memory.close();
    metadata.close();
    arena.close();
  }

  /** What the core says within a round. */
  private <T> T ask(Function<CacheCore, T> action) {
    CompletableFuture<T> answer = agent.call(action);
    agent.doWork(beganNs);
    return answer.join();
  }

  private CacheCore.RegistrationId register() {
    ask(CacheCore::reserveSlot);
    var session = new ControlledSession(memory, "engine", () -> {}, () -> {});
    CompletableFuture<Void> opened = agent.open(session, "engine", "client", identity.pid(), true);
    agent.doWork(beganNs);
    opened.join();
    RegistrationRequest request =
        new RegistrationRequest(
            new byte[32],
            RawEngine.HASH_BYTES,
            0,
            0,
            0,
            List.of(new RegistrationRequest.Group(0, BLOCK, 1)),
            false,
            true);
    return ask(core -> {
      CacheCore.RegistrationId id = core.register(0, request, beganNs);
      core.confirmMappings(0, id.id(), id.generation());
      return id;
    });
  }

  /** Publishes a block, and leaves the round in which the Manager takes note of it to the test. */
  private void publish(CacheCore.RegistrationId id) {
    GrantTable table = memory.table();
    byte[] data = RawEngine.publishData(id.id(), id.generation(), 1);
    long operation =
        GrantWord.operationId(0, GrantWord.generation(table.tryReserve(0, GrantTable.PUBLISH)));
    Command command = new Command().set(Opcode.PUBLISH, 0, 1, identity.epochLow(), operation, 0);
    ask(core -> {
      core.execute(0, PUBLISHES, command, MemorySegment.ofArray(data), data.length, beganNs);
      return null;
    });
    move(table, GrantState.GRANTED, GrantState.ACTIVE);
    table.setEngineResult(0, Status.OK, 1, 1, BLOCK);
    move(table, GrantState.ACTIVE, GrantState.DRAINED);
    table.markDirty(0);
  }

  private static void move(GrantTable table, GrantState from, GrantState next) {
    long word = table.wordAcquire(0);
    assertThat(GrantWord.state(word)).isEqualTo(from);
    assertThat(table.tryEngineMove(0, word, next)).isTrue();
  }

  private SsdStats stats() {
    return ask(core -> core.stats(beganNs)).ssd();
  }

  @Test
  void shouldNotTakeItsOwnStandstillForOneOfTheSsd() {
    publish(register());
    agent.doWork(beganNs); // begins to open a segment
    RawEngine.eventually("an answer of the SSD", ssd::hasDone);
    agent.doWork(beganNs + 2 * SsdConfig.DEFAULT_STALL_NS);
    assertThat(stats().stallsTotal()).isZero();
  }
}
