package io.orbitkv.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.testsupport.TestEngine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Manager and engine in different PID namespaces, as in different containers. */
class PidNamespaceTest {
  private static final List<String> APART =
      List.of("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc");

  @BeforeEach
  void requireNamespaces() throws Exception {
    List<String> line = new ArrayList<>(APART);
    line.add("true");
    Process process;
    try {
      process = new ProcessBuilder(line).redirectErrorStream(true).start();
    } catch (IOException e) {
      assumeTrue(false, "unshare(1) is missing");
      return;
    }
    assumeTrue(
        process.waitFor(30, TimeUnit.SECONDS) && process.exitValue() == 0,
        "PID namespaces are not allowed here");
  }

  /** The Manager sees the process: its end is evidence. */
  @Test
  void shouldGiveBackWhatAKilledEngineOfAnInnerNamespaceHeld() throws IOException {
    try (TestManager manager = TestManager.start();
        TestEngine engine = TestEngine.startBy(APART, manager.socket(), "inner")) {
      assertThat(engine.ask("publish 0 64")).isEqualTo("stored=64 held=0 refused=0 status=OK");
      assertThat(engine.ask("lookup 0 64")).isEqualTo("found=64");
      engine.holdAt("restore.active", "restore");
      assertThat(manager.status().get("grants_active").asInt()).isEqualTo(1);
      engine.kill();
      manager.awaitBaseline(0);
    }
  }

  /** The Manager has no number for the process: it may read, and nothing depends on its end. */
  @Test
  void shouldLetAnEngineOfAnOuterNamespaceRestoreOnly() throws IOException {
    try (TestManager manager = TestManager.startBy(APART);
        TestEngine engine = TestEngine.start(manager.socket(), "outer")) {
      assertThat(engine.ask("publish 0 64")).startsWith("error=").contains("restore");
      assertThat(engine.ask("lookup 0 64")).isEqualTo("found=0");
      assertThat(engine.ask("ping")).isEqualTo("pong");
      assertThat(manager.status().get("sessions").asInt()).isEqualTo(1);
      engine.stop();
      manager.awaitBaseline(0);
    }
  }
}
