package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.channel.Protocol;
import io.orbitkv.testsupport.TestEngine;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Operations that are granted in several parts, to the largest that one command can name. */
class LargeOperationTest {
  private static final int BLOCKS = 20_000;

  private static String stored(int blocks) {
    return "stored=" + blocks + " held=0 refused=0 status=OK";
  }

  private static String delivered(int blocks) {
    return "delivered=" + blocks + " wrong=0 status=OK";
  }

  @Test
  void shouldPublishAndRestoreAsMuchAsOneCommandNames() throws IOException {
    int most = Protocol.MAX_HASHES;
    try (TestManager manager = TestManager.start();
        TestEngine one = TestEngine.startWithManyPages(manager.socket(), "one");
        TestEngine two = TestEngine.startWithManyPages(manager.socket(), "two")) {
      assertThat(one.ask("publish 0 " + (most + 1)))
          .startsWith("error=PLAN_TOO_LARGE")
          .contains("blocks=65537, limit of an operation=65536");
      assertThat(one.ask("publish 0 " + most)).isEqualTo(stored(most));
      assertThat(two.ask("lookup 0 " + most)).isEqualTo("found=" + most);
      assertThat(two.ask("restore")).isEqualTo(delivered(most));
      manager.awaitBaseline(2);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"restore", "publish"})
  void shouldGiveEverythingBackWhenAnEngineIsKilledBetweenTwoParts(String kind) throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine witness = TestEngine.startWithManyPages(manager.socket(), "witness");
        TestEngine victim = TestEngine.startWithManyPages(manager.socket(), "victim")) {
      assertThat(witness.ask("publish 0 " + BLOCKS)).isEqualTo(stored(BLOCKS));
      hold(victim, kind);
      assertThat(manager.status().get("grants_active").asInt()).isEqualTo(1);
      victim.kill();
      manager.awaitBaseline(1);
      assertThat(witness.ask("lookup 100000 " + BLOCKS)).isEqualTo("found=0");
      assertThat(witness.ask("lookup 0 " + BLOCKS)).isEqualTo("found=" + BLOCKS);
      assertThat(witness.ask("restore")).isEqualTo(delivered(BLOCKS));
    }
  }

  private static void hold(TestEngine engine, String kind) {
    if (kind.equals("restore")) {
      assertThat(engine.ask("lookup 0 " + BLOCKS)).isEqualTo("found=" + BLOCKS);
      engine.holdAt("restore.partDrained", "restore");
    } else {
      engine.holdAt("publish.partDrained", "publish 100000 " + BLOCKS);
    }
  }

  @ParameterizedTest
  @CsvSource({"restore, delivered=8192 wrong=0 status=SESSION_ENDED", "publish, .*SESSION_ENDED"})
  void shouldEndTypedWhenTheManagerIsKilledBetweenTwoParts(String kind, String outcome)
      throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.startWithManyPages(manager.socket(), "engine")) {
      assertThat(engine.ask("publish 0 " + BLOCKS)).isEqualTo(stored(BLOCKS));
      hold(engine, kind);
      manager.kill();
      assertThat(engine.finishHeld()).matches(outcome);
      assertThat(engine.ask("ping")).startsWith("error=SESSION_ENDED");
    }
  }
}
