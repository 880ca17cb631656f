package io.orbitkv.manager;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.linux.MemoryFacts;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Test;

class RulesTest {
  private static final Path SOCKET = Path.of("/run/orbitkv/manager.sock");

  @Test
  void shouldAllowTheOwnUserOnly() {
    PeerRule rule = new PeerRule(1000, Set.of());
    assertThatCode(() -> rule.check(1000)).doesNotThrowAnyException();
    assertThatThrownBy(() -> rule.check(1001))
        .isInstanceOf(ProtocolException.class)
        .hasMessageContaining("peer uid=1001")
        .hasMessageContaining("Manager uid=1000")
        .hasMessageContaining("own uid only");
    assertThat(rule.socketMode()).isEqualTo(0600);
  }

  @Test
  void shouldLetTheListDecide() {
    PeerRule rule = new PeerRule(1000, Set.of(7, 8));
    assertThatCode(() -> rule.check(8)).doesNotThrowAnyException();
    assertThatThrownBy(() -> rule.check(1000)).hasMessageContaining("[7, 8]");
    assertThat(rule.socketMode()).isEqualTo(0666);
  }

  @Test
  void shouldTakeExitAsEvidenceOnlyFromTheProcessThatConfirmed() {
    assertThat(SessionConnection.exitNotice(true, 42, 42)).isEmpty();
    assertThat(SessionConnection.exitNotice(true, 42, 43)).contains("pid=42").contains("pid=43");
    assertThat(SessionConnection.exitNotice(true, 0, 0)).contains("PID namespace");
    assertThat(SessionConnection.exitNotice(false, 42, 42)).contains("no descriptor");
  }

  @Test
  void shouldWarnWellBeforeTheSlotsAreFull() {
    assertThat(BootstrapServer.isScarce(46)).isFalse();
    assertThat(BootstrapServer.isScarce(48)).isTrue();
    assertThat(BootstrapServer.isScarce(Protocol.MAX_SESSIONS - 1)).isTrue();
  }

  @Test
  void shouldNameTheLimitThatAPoolExceeds() {
    long pool = 1000L << 20;
    long margin = (50L + 128) << 20;
    assertThatThrownBy(() -> Manager.checkFits(pool, new MemoryFacts(pool * 2, pool + 90, 20)))
        .hasMessageContaining("control group: limit bytes=" + (pool + 90) + ", used bytes=20")
        .hasMessageContaining("wanted bytes=" + pool + ", margin bytes=" + margin)
        .hasMessageContaining("free bytes=" + (pool + 70));
    long least = pool + margin;
    assertThatThrownBy(() -> Manager.checkFits(pool, new MemoryFacts(least - 1, Long.MAX_VALUE, 0)))
        .hasMessageContaining("machine: available bytes=" + (least - 1));
    assertThatCode(() -> Manager.checkFits(pool, new MemoryFacts(least, Long.MAX_VALUE, 0)))
        .doesNotThrowAnyException();
  }

  @Test
  void shouldCheckTheConfigurationWhole() {
    assertThatThrownBy(() -> ManagerConfig.builder(SOCKET, 1 << 20).build())
        .isInstanceOf(ManagerException.class)
        .hasMessageContaining("the least is bytes=" + (2 << 20));
    assertThatThrownBy(() -> ManagerConfig.builder(SOCKET, 1L << 30).poolShards(65).build())
        .hasMessageContaining("allowed=1..64");
    assertThatThrownBy(
            () -> ManagerConfig.builder(SOCKET, 1L << 30).queryBudgetBytes(2L << 30).build())
        .hasMessageContaining("0 < instance <= all <= pool");
    assertThatThrownBy(
            () -> ManagerConfig.builder(SOCKET, 1L << 30).drainTimeout(Duration.ofDays(1)).build())
        .hasMessageContaining("drain timeout");
    assertThatThrownBy(
            () -> ManagerConfig.builder(Path.of("/" + "x".repeat(120)), 1L << 30).build())
        .hasMessageContaining("limit=107");
    ManagerConfig config = ManagerConfig.builder(SOCKET, 1L << 30).build();
    assertThat(config.queryBudgetBytes()).isEqualTo(768L << 20);
    assertThat(config.instanceBudgetBytes()).isEqualTo(768L << 20);
  }

  @Test
  void shouldKeepNamesOfClientsPrintable() {
    assertThat(SessionConnection.printable("a\n\"b\u001b[1m")).isEqualTo("a??b?[1m");
  }
}
