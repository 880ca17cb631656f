package io.orbitkv.bench.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.bench.replay.ReplayResult.Percentiles;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class ReplayResultTest {
  private static ReplayResult result(long wrongBytes, List<String> leaks) {
    Percentiles times = new Percentiles(1.5, 20);
    return new ReplayResult(
        "t",
        2,
        8,
        2,
        2,
        6,
        1,
        128,
        wrongBytes,
        2.5,
        1,
        1,
        128,
        384,
        times,
        times,
        times,
        0.25,
        leaks);
  }

  @Test
  void shouldWriteEachFieldUnderItsName() {
    JsonNode json = new JsonMapper().readTree(result(0, List.of("leases=1")).toJson());

    assertThat(json.propertyNames())
        .containsExactly(
            "trace",
            "requests",
            "lookup_blocks",
            "hit_blocks",
            "prefix_hit_ratio",
            "restored_blocks",
            "published_blocks",
            "evicted_blocks",
            "verified_bytes",
            "wrong_bytes",
            "seconds",
            "latency_us",
            "manager_cpu_seconds",
            "leaks");
    assertThat(json.get("prefix_hit_ratio").doubleValue()).isEqualTo(0.25);
    assertThat(json.get("latency_us").propertyNames())
        .containsExactly("lookup", "restore", "publish");
    assertThat(json.at("/latency_us/publish/p99").doubleValue()).isEqualTo(20);
    assertThat(json.at("/leaks/0").stringValue()).isEqualTo("leases=1");
  }

  @Test
  void shouldBeCleanOnlyWithoutWrongBytesAndLeaks() {
    assertThat(result(0, List.of()).isClean()).isTrue();
    assertThat(result(1, List.of()).isClean()).isFalse();
    assertThat(result(0, List.of("leases=1")).isClean()).isFalse();
  }

  @Test
  void shouldShowWrongBytesAndLeaksInTable() {
    assertThat(result(3, List.of("leases=1")).toTable())
        .containsPattern("wrong bytes +3\n")
        .containsPattern("not given back +leases=1\n");
  }
}
