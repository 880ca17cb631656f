package io.orbitkv.bench.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.orbitkv.bench.replay.Trace;
import java.io.StringReader;
import java.util.List;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.xml.sax.InputSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class PlannerTest {
  private static final Trace SMALL =
      new Trace(
          "<small>",
          Stream.iterate(0, i -> i + 1)
              .limit(40)
              .map(i -> new long[] {0, 1 + i % 7, 100 + i % 14})
              .toList());

  @ParameterizedTest
  @CsvSource({"mooncake-conversation,0.36641", "mooncake-synthetic,0.63960"})
  void shouldHitWithoutBoundWhatTheTraceAllows(String name, double ratio) {
    DenseTrace trace = DenseTrace.of(Trace.open(name));

    try (CoreCache core = new CoreCache(trace.blocks())) {
      assertThat(trace.hitRatio(core)).isEqualTo(ratio, within(0.000005));
    }
    assertThat(trace.hitRatio(new Lru(trace.blocks(), trace.blocks())))
        .isEqualTo(ratio, within(0.000005));
  }

  /** Figures of the reference simulation that the policies were chosen by. */
  @Test
  void shouldAgreeWithTheReferenceOnBoundsAndLru() {
    DenseTrace trace = DenseTrace.of(Trace.open("mooncake-synthetic"));
    int blocks = trace.blocks() / 10;

    assertThat(trace.hitRatio(new Lru(trace.blocks(), blocks))).isEqualTo(0.2623, within(5e-5));
    assertThat(trace.hitRatio(new BeladyPrefix(trace.blocks(), blocks, trace.requests())))
        .isEqualTo(0.5063, within(5e-5));
  }

  @Test
  void shouldEvictBetterThanLruOnProductionRequests() {
    DenseTrace trace = DenseTrace.of(Trace.open("mooncake-synthetic"));
    int blocks = trace.blocks() / 4;

    try (CoreCache core = new CoreCache(blocks)) {
      assertThat(trace.hitRatio(core))
          .isGreaterThan(1.04 * trace.hitRatio(new Lru(trace.blocks(), blocks)));
    }
  }

  static List<Arguments> requests() {
    return List.of(
        arguments("scan", RandomRequests.scan()),
        arguments("loop", RandomRequests.loop()),
        arguments("popular", RandomRequests.popular()),
        arguments("shared prompts", RandomRequests.sharedPrompts()),
        arguments("shift", RandomRequests.shift()),
        arguments("conversations", RandomRequests.conversations()),
        arguments("short", DenseTrace.of(Trace.open("mooncake-conversation").limit(2000))));
  }

  /** What the policy learns must not make it worse than simple ones where there is little of it. */
  @ParameterizedTest(name = "{0}")
  @MethodSource("requests")
  void shouldNotFallBehindSimplePolicies(String kind, DenseTrace trace) {
    int ids = trace.blocks();
    for (double fraction : List.of(0.01, 0.05, 0.1, 0.25, 0.5)) {
      int size = (int) (fraction * ids);
      double simple =
          Math.max(trace.hitRatio(new Lru(ids, size)), trace.hitRatio(new S3Fifo(ids, size)));
      try (CoreCache core = new CoreCache(size)) {
        assertThat(trace.hitRatio(core))
            .as("%s, size=%s", kind, fraction)
            .isGreaterThanOrEqualTo(0.9 * simple);
      }
    }
  }

  @Test
  void shouldWriteEachCurveByItsName() {
    Plan plan = new Planner(SMALL, List.of(0.5, 1.0), 1000).run();
    JsonNode json = new JsonMapper().readTree(plan.toJson());

    for (String name : List.of("ours", "lru", "s3_fifo", "w_tinylfu", "arc", "belady_prefix")) {
      assertThat(json.path(name)).as(name).hasSize(2);
      assertThat(json.path(name).path(0).path("fraction").asDouble()).isEqualTo(0.5);
      assertThat(json.path(name).path(0).path("blocks").asInt()).isEqualTo(plan.blocks() / 2);
      assertThat(json.path(name).path(1).path("prefix_hit_ratio").asDouble())
          .as(name)
          .isEqualTo(plan.unboundedRatio(), within(1e-9));
    }
    assertThat(json.path("tiers").path(0).path("written_bytes").asLong() % 1000).isZero();
    assertThat(plan.toTable()).contains("belady_prefix", "GiB written");
  }

  @Test
  void shouldDrawTextAndWellFormedSvg() throws Exception {
    PlanPicture picture = new PlanPicture(new Planner(SMALL, List.of(0.25, 1.0), 1).run());

    assertThat(picture.toText()).contains("miss ratio", "25%", "O ours");
    assertThat(
            DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new InputSource(new StringReader(picture.toSvg())))
                .getElementsByTagName("path")
                .getLength())
        .isEqualTo(5 + 2 * 6);
  }

  @Test
  void shouldRefuseRequestsThatNoEngineCouldMake() {
    Trace trace = new Trace("<long>", List.of(new long[65_537]));

    assertThatThrownBy(() -> new Planner(trace, List.of(0.5), 1))
        .hasMessageContaining("65537 blocks, allowed: 65536");
  }

  @Test
  void shouldRefuseSizesThatAreNoShares() {
    assertThatThrownBy(() -> new Planner(SMALL, List.of(0.0), 1))
        .hasMessageContaining("fraction=0.0");
    assertThatThrownBy(() -> new Planner(SMALL, List.of(0.5), 0)).hasMessageContaining("bytes=0");
  }
}
