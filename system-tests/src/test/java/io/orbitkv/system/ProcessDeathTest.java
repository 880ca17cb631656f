package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.testsupport.EngineMain;
import io.orbitkv.testsupport.ProcFs;
import io.orbitkv.testsupport.TestEngine;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/**
 * Engine and Manager are killed at named points; nothing is lost that was stored, nothing is held
 * for the dead.
 */
class ProcessDeathTest {
  private static final int BLOCKS = 64;

  private static final Duration CALL = Duration.ofSeconds(5);

  /** Most time for a call: its own bound, and what a busy machine adds. */
  private static final Duration MOST = CALL.multipliedBy(6);

  @Test
  void shouldRestoreInAnotherProcessWhatOnePublished() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine one = TestEngine.start(manager.socket(), "one");
        TestEngine two = TestEngine.start(manager.socket(), "two")) {
      assertThat(one.ask("publish 0 " + BLOCKS)).isEqualTo("stored=64 held=0 refused=0 status=OK");
      assertThat(one.ask("publish 0 " + BLOCKS)).isEqualTo("stored=0 held=64 refused=0 status=OK");
      assertThat(two.ask("lookup 0 100")).isEqualTo("found=64");
      assertThat(two.ask("restore")).isEqualTo("delivered=64 wrong=0 status=OK");
      assertThat(two.ask("restore")).isEqualTo("delivered=0 wrong=0 status=LEASE_ENDED");
      manager.awaitBaseline(2);
    }
  }

  private static void holdAt(TestEngine engine, String point) {
    Processors.assumeEnoughFor(point);
    if (point.startsWith("restore")) {
      assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=64");
      engine.holdAt(point, "restore");
    } else {
      engine.holdAt(point, "publish 1000 " + BLOCKS);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "restore.reserved",
        "restore.granted",
        "restore.active",
        "restore.helping",
        "restore.copied",
        "restore.drained",
        "publish.reserved",
        "publish.granted",
        "publish.active",
        "publish.helping",
        "publish.copied",
        "publish.drained"
      })
  void shouldGiveEverythingBackWhenAnEngineIsKilled(String point) throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine victim = TestEngine.start(manager.socket(), "victim")) {
      assertThat(witness.ask("publish 0 " + BLOCKS)).contains("stored=64");
      holdAt(victim, point);
      victim.kill();
      manager.awaitBaseline(1);
      manager.awaitMaps(3); // one arena, one session
      assertThat(witness.ask("lookup 0 " + BLOCKS)).isEqualTo("found=64");
      assertThat(witness.ask("restore")).isEqualTo("delivered=64 wrong=0 status=OK");
      int visible = point.equals("publish.drained") ? BLOCKS : 0; // what drained whole is sealed
      assertThat(witness.ask("lookup 1000 " + BLOCKS)).isEqualTo("found=" + visible);
      if (visible > 0) {
        assertThat(witness.ask("restore")).isEqualTo("delivered=64 wrong=0 status=OK");
      }
      manager.awaitBaseline(1);
    }
  }

  /** All but the helper's share is copied by then. */
  @ParameterizedTest
  @CsvSource({"restore.helping, pinned_blocks", "publish.helping, unsealed_blocks"})
  void shouldHoldTheBlocksOfAHelperUntilItsEngineIsKilled(String point, String gauge)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine victim = TestEngine.start(manager.socket(), "victim")) {
      assertThat(victim.ask("publish 0 " + BLOCKS)).contains("stored=64");
      holdAt(victim, point);
      assertThat(victim.ask("await 500")).isEqualTo("ended=false pagesFree=false");
      JsonNode status = manager.status();
      assertThat(status.get("grants_active").asInt()).isEqualTo(1);
      assertThat(status.get(gauge).asInt()).isEqualTo(BLOCKS);
      victim.kill();
      manager.awaitBaseline(0);
      try (TestEngine other = TestEngine.start(manager.socket(), "other")) {
        assertThat(other.ask("lookup 1000 " + BLOCKS)).isEqualTo("found=0");
        assertThat(other.ask("lookup 0 " + BLOCKS)).isEqualTo("found=64");
        assertThat(other.ask("restore")).isEqualTo("delivered=64 wrong=0 status=OK");
      }
    }
  }

  @Test
  void shouldGiveBackTheLeasesOfAKilledEngine() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.start(manager.socket(), "engine")) {
      engine.ask("publish 0 " + BLOCKS);
      engine.ask("lookup 0 " + BLOCKS);
      assertThat(manager.status().get("lease_bytes").asLong())
          .isEqualTo((long) BLOCKS * EngineMain.BLOCK_BYTES);
      engine.kill();
      manager.awaitBaseline(0);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "restore.reserved, error=SESSION_ENDED.*|.*status=SESSION_ENDED",
    "restore.granted, .*status=SESSION_ENDED|delivered=64 wrong=0 status=OK",
    "restore.active, .*status=SESSION_ENDED|delivered=64 wrong=0 status=OK",
    "restore.helping, delivered=64 wrong=0 status=OK",
    "restore.copied, delivered=64 wrong=0 status=OK",
    "restore.drained, delivered=64 wrong=0 status=OK",
    "publish.reserved, error=SESSION_ENDED.*|.*status=SESSION_ENDED",
    "publish.granted, .*status=SESSION_ENDED",
    "publish.active, .*status=SESSION_ENDED",
    "publish.helping, .*status=SESSION_ENDED",
    "publish.copied, .*status=SESSION_ENDED",
    "publish.drained, .*status=SESSION_ENDED|stored=64 held=0 refused=0 status=OK"
  })
  void shouldEndEveryCallTypedWhenTheManagerIsKilled(String point, String outcome)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.start(manager.socket(), "engine")) {
      assertThat(engine.ask("publish 0 " + BLOCKS)).contains("stored=64");
      holdAt(engine, point);
      manager.kill();
      assertThat(engine.finishHeld()).matches(outcome);
      assertThat(engine.ask("ping")).startsWith("error=SESSION_ENDED");
      assertThat(engine.ask("lookup 0 1")).startsWith("error=SESSION_ENDED");
      assertThat(engine.ask("publish 0 1")).startsWith("error=SESSION_ENDED");
      assertThat(engine.isAlive()).isTrue();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "restore.helping, delivered=64 wrong=0 status=OK",
    "publish.helping, .*status=SESSION_ENDED"
  })
  void shouldFreeNoPageBeforeTheHelperHasLeftWhenTheManagerIsKilled(String point, String outcome)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      assertThat(engine.ask("publish 0 " + BLOCKS)).contains("stored=64");
      holdAt(engine, point);
      manager.kill();
      assertThat(engine.ask("ping")).startsWith("error=SESSION_ENDED");
      assertThat(engine.ask("await 500")).isEqualTo("ended=false pagesFree=false");
      long began = System.nanoTime();
      assertThat(engine.finishHeld()).matches(outcome);
      assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(MOST);
      assertThat(engine.ask("await 0")).isEqualTo("ended=true pagesFree=true");
    }
  }

  @Test
  void shouldKeepForkedChildrenAwayFromThePool() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.start(manager.socket(), "engine")) {
      engine.ask("publish 0 " + BLOCKS);
      assertThat(ProcFs.maps(engine.pid(), "memfd:orbitkv")).isNotEmpty();
      long child = Long.parseLong(engine.ask("fork").substring("pid=".length()));
      try {
        assertThat(ProcFs.maps(child, "memfd:orbitkv")).isEmpty();
      } finally {
        ProcessHandle.of(child).ifPresent(ProcessHandle::destroyForcibly);
      }
    }
  }

  @Test
  void shouldLeaveNothingOfAnEngineThatClosed() throws IOException {
    try (TestManager manager = TestManager.start()) {
      long before = ProcFs.openFiles(manager.pid());
      for (int i = 0; i < 5; i++) {
        try (TestEngine engine = TestEngine.start(manager.socket(), "engine")) {
          assertThat(engine.ask("publish 0 8")).contains("status=OK");
          engine.stop();
        }
        manager.awaitBaseline(0);
      }
      manager.await("closed descriptors", status -> openFiles(manager.pid()) <= before);
      manager.awaitMaps(1);
    }
  }

  private static long openFiles(long pid) {
    try {
      return ProcFs.openFiles(pid);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
