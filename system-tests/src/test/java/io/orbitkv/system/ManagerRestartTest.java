package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.testsupport.ProcFs;
import io.orbitkv.testsupport.TestEngine;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An engine goes on while its Manager is away, and comes back by itself with the next one. */
class ManagerRestartTest {
  private static final int BLOCKS = 64;
  private static final String LOST = "connected=false";
  private static final String BACK = "connected=true reconnects=";

  /** Memory of Managers that a process has mapped, and its open files. */
  private record Held(int maps, long files) {
    static Held of(TestEngine engine) {
      try {
        int maps = ProcFs.maps(engine.pid(), "memfd:orbitkv").size();
        return new Held(maps, ProcFs.openFiles(engine.pid()));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static void assertServes(TestManager manager, TestEngine engine) {
    assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=0");
    assertThat(engine.ask("publish 0 " + BLOCKS)).isEqualTo("stored=64 held=0 refused=0 status=OK");
    assertThat(engine.ask("lookup 0 100")).isEqualTo("found=64");
    assertThat(engine.ask("restore")).isEqualTo("delivered=64 wrong=0 status=OK");
    manager.awaitBaseline(1);
  }

  /** The same memory and files as before, once the thread that registered has settled. */
  private static void awaitHolds(TestEngine engine, Held before) {
    assertThat(Waits.until(() -> Held.of(engine), before::equals)).isEqualTo(before);
  }

  @Test
  void shouldGoOnWithoutAManagerAndFindTheNextOne() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.startReconnecting(manager.socket(), "engine")) {
      assertServes(manager, engine);
      Held before = Held.of(engine);
      for (int round = 1; round <= 3; round++) {
        assertThat(engine.ask("lookup 0 1"))
            .isEqualTo("found=1"); // its lease ends with its Manager
        if (round == 2) {
          manager.terminate();
        } else {
          manager.kill();
        }
        assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=0");
        assertThat(engine.ask("publish 0 " + BLOCKS))
            .matches("error=(NOT_READY|SESSION_ENDED) publish: nothing was submitted: .*");
        engine.awaitState(LOST);
        manager.startAgain();
        engine.awaitState(BACK + round + " generation=1");
        assertServes(manager, engine);
        awaitHolds(engine, before);
      }
      engine.stop();
      manager.awaitBaseline(0);
    }
  }

  @Test
  void shouldComeBackToEveryManagerUnderLoad() throws IOException {
    restartUnderLoad(4);
  }

  @Tag("long")
  @Test
  void shouldComeBackToTwentyManagersUnderLoad() throws IOException {
    restartUnderLoad(20);
  }

  /** Four engines go on publishing, looking up and restoring while Managers come and go. */
  private static void restartUnderLoad(int restarts) throws IOException {
    List<TestEngine> engines = new ArrayList<>();
    try (TestManager manager = TestManager.start()) {
      try {
        for (int i = 0; i < 4; i++) {
          engines.add(TestEngine.startReconnecting(manager.socket(), "engine-" + i));
          assertThat(engines.get(i).ask("background churn " + 1000 * i + " 32"))
              .isEqualTo("started");
        }
        for (int round = 0; round < restarts; round++) {
          engines.forEach(Waits::awaitHit);
          if (round % 2 == 0) {
            manager.terminate();
          } else {
            manager.kill();
          }
          engines.forEach(engine -> engine.awaitState(LOST));
          manager.startAgain();
        }
        for (TestEngine engine : engines) {
          Waits.awaitHit(engine);
          assertThat(engine.ask("state")).startsWith(BACK + restarts + " ");
          engine.ask("enough");
          assertThat(engine.ask("result")).endsWith(" wrong=0 unexpected=[]");
          engine.stop();
        }
        manager.awaitBaseline(0);
        manager.awaitMaps(1);
      } finally {
        engines.forEach(TestEngine::close);
      }
    }
  }

  @Test
  void shouldStartBeforeItsManager() throws IOException {
    try (TestManager manager = TestManager.start()) {
      manager.kill();
      try (TestEngine engine = TestEngine.startReconnecting(manager.socket(), "engine")) {
        assertThat(engine.ask("state")).startsWith(LOST);
        assertThat(engine.ask("lookup 0 8")).isEqualTo("found=0");
        assertThat(engine.ask("publish 0 8")).startsWith("error=NOT_READY publish: nothing was");
        manager.startAgain();
        engine.awaitState(BACK + "1 generation=1");
        assertServes(manager, engine);
        engine.stop();
      }
    }
  }

  @Test
  void shouldRefuseALeaseOfAnEarlierManager() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.startReconnecting(manager.socket(), "engine")) {
      engine.ask("publish 0 " + BLOCKS);
      assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=64");
      manager.kill();
      engine.awaitState(LOST);
      assertThat(engine.ask("restore")).startsWith("error=NOT_READY restore: no Manager: ");
      assertThat(engine.ask("release")).isEqualTo("ended");
      manager.startAgain();
      engine.awaitState(BACK + "1 generation=1");
      assertThat(engine.ask("restore")).startsWith("error=EPOCH_MISMATCH");
      assertThat(engine.ask("release")).isEqualTo("ended");
      manager.awaitBaseline(1);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "restore.reserved, error=.*|.*status=SESSION_ENDED",
    "restore.granted, .*status=SESSION_ENDED|delivered=64 wrong=0 status=OK",
    "restore.active, .*status=SESSION_ENDED|delivered=64 wrong=0 status=OK",
    "restore.copied, delivered=64 wrong=0 status=OK",
    "restore.drained, delivered=64 wrong=0 status=OK",
    "publish.reserved, error=SESSION_ENDED publish: nothing was submitted.*",
    "publish.granted, .*status=SESSION_ENDED",
    "publish.active, .*status=SESSION_ENDED",
    "publish.copied, .*status=SESSION_ENDED",
    "publish.drained, .*status=SESSION_ENDED|stored=64 held=0 refused=0 status=OK"
  })
  void shouldFinishOnTheOldMappingsBeforeItMapsNewOnes(String point, String outcome)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.startReconnecting(manager.socket(), "engine")) {
      assertServes(manager, engine);
      Held before = Held.of(engine);
      if (point.startsWith("restore")) {
        engine.ask("lookup 0 " + BLOCKS);
        engine.holdAt(point, "restore");
      } else {
        engine.holdAt(point, "publish 1000 " + BLOCKS);
      }
      String mapped = arena(engine);
      manager.kill();
      manager.startAgain();
      engine.awaitState(LOST);
      assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=0");
      assertThat(arena(engine)).as("still mapped, and no other").isEqualTo(mapped);
      assertThat(manager.status().get("sessions").asInt()).isZero();
      assertThat(engine.finishHeld()).matches(outcome);
      engine.awaitState(BACK + "1 generation=1");
      assertThat(engine.ask("lookup 1000 " + BLOCKS)).isEqualTo("found=0");
      assertServes(manager, engine);
      awaitHolds(engine, before);
    }
  }

  /** The arena that the engine has mapped: its address and the kernel's name of the file. */
  private static String arena(TestEngine engine) throws IOException {
    return ProcFs.maps(engine.pid(), "memfd:orbitkv-arena").toString();
  }
}
