package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.client.AdminClient;
import io.orbitkv.client.OrbitKvTimeoutException;
import io.orbitkv.testsupport.ProcFs;
import io.orbitkv.testsupport.StoppedProcess;
import io.orbitkv.testsupport.TestEngine;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/**
 * Manager, engine and copy thread stand still at named points, the processes by SIGSTOP: every call
 * returns within its bound, nothing that was granted is reused meanwhile, and all go on afterwards.
 */
class ProcessStopTest {
  /** So many that a restore has more than one step. */
  private static final int BLOCKS = 256;

  /** First block of what is published while another is held. */
  private static final int NEW = 1000;

  /** Bound of a call: longer than a busy machine keeps one that is answered from its thread. */
  private static final Duration CALL = Duration.ofSeconds(5);

  /** Most time for a call: its own bound, and what a busy machine adds. */
  private static final Duration MOST = CALL.multipliedBy(6);

  /** What was not claimed within its bound, told by its handle or by the call that began it. */
  private static final String UNCLAIMED =
      "(delivered=0 wrong=0|stored=0 held=0 refused="
          + BLOCKS
          + ") status=CANCELLED|error=CANCELLED .*not claimed within ms=5000";

  private static final String STORED = "stored=256 held=0 refused=0 status=OK";
  private static final String DELIVERED = "delivered=256 wrong=0 status=OK";

  private static String command(String point) {
    return point.startsWith("restore") ? "restore" : "publish " + NEW + " " + BLOCKS;
  }

  private static String whole(String point) {
    return point.startsWith("restore") ? DELIVERED : STORED;
  }

  /** As {@link #whole}; what was not claimed within its bound has never begun, and says so. */
  private static String wholeOrUnclaimed(String point) {
    return whole(point) + (point.endsWith("reserved") ? "|" + UNCLAIMED : "");
  }

  /** Publishes blocks, leases them, and holds the engine's next operation at a point. */
  private static void holdAt(TestEngine engine, TestEngine witness, String point) {
    Processors.assumeEnoughFor(point);
    assertThat(witness.ask("publish 0 " + BLOCKS)).isEqualTo(STORED);
    assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=" + BLOCKS);
    engine.holdAt(point, command(point));
  }

  /** The bytes of a run of blocks, or that none of it is there. */
  private static void assertRight(TestEngine witness, int first, boolean mustBeThere) {
    String found = witness.ask("lookup " + first + " " + BLOCKS);
    if (mustBeThere || !found.equals("found=0")) {
      int count = Integer.parseInt(found.substring("found=".length()));
      assertThat(count).isEqualTo(mustBeThere ? BLOCKS : count);
      assertThat(witness.ask("restore")).isEqualTo("delivered=" + count + " wrong=0 status=OK");
    }
  }

  /** Publishes five times the pool, so that every range that may be reused is. */
  private static void pressForMemory(TestEngine witness) {
    for (int first = 100_000; first < 105_120; first += 512) {
      assertThat(witness.ask("publish " + first + " 512"))
          .matches("stored=\\d+ held=0 refused=\\d+ status=(OK|POOL_FULL)");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "restore.reserved, " + UNCLAIMED,
    "restore.granted, delivered=256 wrong=0 status=OK",
    "restore.active, delivered=256 wrong=0 status=OK",
    "restore.copying, delivered=256 wrong=0 status=OK",
    "restore.helping, delivered=256 wrong=0 status=OK",
    "restore.copied, delivered=256 wrong=0 status=OK",
    "restore.drained, delivered=256 wrong=0 status=OK"
  })
  void shouldEndARestoreOnItsOwnWhileTheManagerIsStopped(String point, String outcome)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      holdAt(engine, witness, point);
      try (StoppedProcess _ = StoppedProcess.stop(manager.pid())) {
        long began = System.nanoTime();
        assertThat(engine.finishHeld()).matches(outcome);
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(MOST);
      }
      assertGoesOn(manager, engine, witness);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "publish.reserved, " + UNCLAIMED,
    "publish.granted, stored=256 held=0 refused=0 status=OK",
    "publish.active, stored=256 held=0 refused=0 status=OK",
    "publish.copying, stored=256 held=0 refused=0 status=OK",
    "publish.helping, stored=256 held=0 refused=0 status=OK",
    "publish.copied, stored=256 held=0 refused=0 status=OK",
    "publish.drained, stored=256 held=0 refused=0 status=OK"
  })
  void shouldEndAPublishOnceTheManagerGoesOn(String point, String outcome) throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      holdAt(engine, witness, point);
      try (StoppedProcess _ = StoppedProcess.stop(manager.pid())) {
        engine.ask("resume");
        assertTimesOut(engine, "lookup 0 1");
        if (point.endsWith("reserved")) { // unclaimed at its bound: it never begins
          assertThat(engine.ask("result")).matches(outcome);
        }
      }
      assertThat(engine.ask("result")).matches(outcome);
      assertRight(witness, NEW, !point.endsWith("reserved"));
      assertGoesOn(manager, engine, witness);
    }
  }

  private static void assertTimesOut(TestEngine engine, String call) {
    long began = System.nanoTime();
    assertThat(engine.ask(call)).startsWith("error=TIMEOUT ");
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(MOST);
  }

  /** All that was there before works, and nothing is held. */
  private static void assertGoesOn(TestManager manager, TestEngine engine, TestEngine witness) {
    assertThat(engine.ask("ping")).isEqualTo("pong");
    assertThat(engine.ask("release")).isIn("released", "ended");
    assertRight(engine, 0, true);
    assertRight(witness, 0, true);
    manager.awaitBaseline(2);
  }

  @Test
  void shouldEndEveryCallTypedWithinItsBoundWhileTheManagerIsStopped() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      assertThat(engine.ask("publish 0 " + BLOCKS)).isEqualTo(STORED);
      assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=" + BLOCKS);
      long files = ProcFs.openFiles(manager.pid());
      try (StoppedProcess _ = StoppedProcess.stop(manager.pid())) {
        assertTimesOut(engine, "ping");
        assertTimesOut(engine, "lookup 0 " + BLOCKS);
        assertTimesOut(engine, "release");
        assertThat(engine.ask("restore")).matches(UNCLAIMED);
        assertThat(engine.ask("publish " + NEW + " " + BLOCKS)).matches(UNCLAIMED);
        assertThat(engine.ask("state")).startsWith("connected=true");
        assertThatThrownBy(() -> AdminClient.status(manager.socket(), CALL))
            .isInstanceOf(OrbitKvTimeoutException.class);
      }
      assertThat(engine.ask("ping")).isEqualTo("pong");
      assertRight(engine, 0, true);
      assertThat(engine.ask("publish " + NEW + " " + BLOCKS)).isEqualTo(STORED);
      assertRight(engine, NEW, true);
      manager.awaitBaseline(1);
      manager.await("closed descriptors", _ -> openFiles(manager.pid()) <= files);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "restore.reserved",
        "restore.granted",
        "restore.active",
        "restore.copying",
        "restore.helping",
        "restore.copied",
        "restore.drained",
        "publish.reserved",
        "publish.granted",
        "publish.active",
        "publish.copying",
        "publish.helping",
        "publish.copied",
        "publish.drained"
      })
  void shouldReuseNothingOfAStoppedEngine(String point) throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      holdAt(engine, witness, point);
      int maps = ProcFs.maps(manager.pid(), "memfd:orbitkv").size();
      long files = ProcFs.openFiles(manager.pid());
      try (StoppedProcess _ = StoppedProcess.stop(engine.pid())) {
        pressForMemory(witness);
        assertThat(manager.status().get("sessions").asInt()).isEqualTo(2);
        assertThat(witness.ask("lookup 104608 512")).isEqualTo("found=512"); // the newest
      }
      assertThat(engine.finishHeld()).matches(wholeOrUnclaimed(point));
      assertThat(witness.ask("restore")).isEqualTo("delivered=512 wrong=0 status=OK");
      assertRight(witness, NEW, false);
      assertThat(engine.ask("release")).isIn("released", "ended");
      manager.awaitBaseline(2);
      assertThat(ProcFs.maps(manager.pid(), "memfd:orbitkv")).hasSize(maps);
      manager.await("closed descriptors", _ -> openFiles(manager.pid()) <= files);
    }
  }

  /**
   * A stopped engine has half of the pool and has not begun, a lease a quarter, and all is wanted.
   */
  @ParameterizedTest
  @CsvSource({
    "restore.granted, delivered=0 wrong=0 status=LIMIT",
    "publish.granted, stored=0 held=0 refused=512 status=LIMIT"
  })
  void shouldGiveToOthersWhatAStoppedEngineHasNotTakenUp(String point, String outcome)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine other = TestEngine.start(manager.socket(), "other");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      assertThat(witness.ask("publish 0 512")).startsWith("stored=512");
      assertThat(engine.ask("lookup 0 512")).isEqualTo("found=512");
      engine.holdAt(point, point.startsWith("restore") ? "restore" : "publish " + NEW + " 512");
      if (point.startsWith("publish")) {
        assertThat(engine.ask("release")).isEqualTo("released");
      }
      assertThat(witness.ask("publish 5000 256")).isEqualTo(STORED);
      assertThat(witness.ask("lookup 5000 256")).isEqualTo("found=256");
      try (StoppedProcess _ = StoppedProcess.stop(engine.pid())) {
        assertThat(other.ask("publish 6000 512")).endsWith("status=POOL_FULL");
        manager.await(
            "room for a publish", _ -> other.ask("publish 6000 512").endsWith("status=OK"));
        assertThat(other.ask("lookup 6000 512")).isEqualTo("found=512");
        manager.await("the revoke", status -> status.get("revoked_operations_total").asInt() == 1);
      }
      assertThat(engine.finishHeld()).isEqualTo(outcome);
      assertThat(other.ask("restore")).isEqualTo("delivered=512 wrong=0 status=OK");
      assertThat(witness.ask("restore")).isEqualTo(DELIVERED);
      assertRight(witness, NEW, false);
      manager.awaitBaseline(3);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "restore.active",
        "restore.copying",
        "restore.helping",
        "publish.active",
        "publish.copying",
        "publish.helping"
      })
  void shouldServeTheRestWhileACopyThreadStandsStill(String point) throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      holdAt(engine, witness, point);
      pressForMemory(witness);
      assertThat(engine.ask("ping")).isEqualTo("pong");
      assertThat(manager.status().get("grants_active").asInt()).isEqualTo(1);
      assertThat(engine.finishHeld()).isEqualTo(whole(point));
      assertThat(witness.ask("lookup 104608 512")).isEqualTo("found=512");
      assertThat(witness.ask("restore")).isEqualTo("delivered=512 wrong=0 status=OK");
      assertRight(witness, NEW, false);
      assertThat(engine.ask("release")).isIn("released", "ended");
      manager.awaitBaseline(2);
    }
  }

  @ParameterizedTest
  @CsvSource({"restore.helping, pinned_blocks", "publish.helping, unsealed_blocks"})
  void shouldKeepTheBlocksWhileOnlyAHelperIsInsideAStoppedEngine(String point, String gauge)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      holdAt(engine, witness, point);
      assertThat(engine.ask("await 500")).isEqualTo("ended=false pagesFree=false");
      try (StoppedProcess _ = StoppedProcess.stop(engine.pid())) {
        pressForMemory(witness);
        JsonNode status = manager.status();
        assertThat(status.get("grants_active").asInt()).isEqualTo(1);
        assertThat(status.get("retained_operations").asInt()).isZero();
        assertThat(status.get(gauge).asInt()).isEqualTo(BLOCKS);
      }
      assertThat(engine.finishHeld()).isEqualTo(whole(point));
      assertThat(engine.ask("await 0")).isEqualTo("ended=true pagesFree=true");
      assertRight(witness, point.startsWith("publish") ? NEW : 0, true);
      assertThat(engine.ask("release")).isIn("released", "ended");
      manager.awaitBaseline(2);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "restore.active, delivered=256 wrong=0 status=OK|.*status=SESSION_ENDED",
    "restore.copying, delivered=256 wrong=0 status=OK",
    "restore.helping, delivered=256 wrong=0 status=OK",
    "publish.active, .*status=SESSION_ENDED",
    "publish.copying, .*status=SESSION_ENDED",
    "publish.helping, .*status=SESSION_ENDED"
  })
  void shouldNotDisturbTheNextManagerWithCopiesOfAStoppedEngine(String point, String outcome)
      throws IOException {
    Processors.assumeEnoughFor(point);
    try (TestManager manager = TestManager.start(64, "--drain-timeout", "1")) {
      try (TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
        assertThat(engine.ask("publish 0 " + BLOCKS)).isEqualTo(STORED);
        assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=" + BLOCKS);
        engine.holdAt(point, command(point));
        try (StoppedProcess _ = StoppedProcess.stop(engine.pid())) {
          manager.terminate();
          manager.startAgain();
        }
        try (TestEngine witness = TestEngine.start(manager.socket(), "witness")) {
          pressForMemory(witness);
          assertThat(engine.finishHeld()).matches(outcome);
          assertThat(witness.ask("lookup 104608 512")).isEqualTo("found=512");
          assertThat(witness.ask("restore")).isEqualTo("delivered=512 wrong=0 status=OK");
          assertThat(engine.ask("ping")).startsWith("error=SESSION_ENDED");
        }
        manager.awaitBaseline(0);
      }
    }
  }

  /** No bound of anything, of those that are configured, is as long. */
  @Tag("long")
  @Test
  void shouldKeepSessionsThroughAMinuteOfStandstill() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.start(manager.socket(), "witness");
        TestEngine engine = TestEngine.start(manager.socket(), "engine", CALL)) {
      holdAt(engine, witness, "restore.active");
      try (StoppedProcess _ = StoppedProcess.stop(engine.pid())) {
        pass(Duration.ofSeconds(60));
      }
      try (StoppedProcess _ = StoppedProcess.stop(manager.pid())) {
        pass(Duration.ofSeconds(60));
      }
      assertThat(engine.finishHeld()).isEqualTo(DELIVERED);
      assertGoesOn(manager, engine, witness);
    }
  }

  private static void pass(Duration time) {
    long end = System.nanoTime() + time.toNanos();
    for (long left = time.toNanos(); left > 0; left = end - System.nanoTime()) {
      LockSupport.parkNanos(Math.min(left, TimeUnit.SECONDS.toNanos(1)));
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
