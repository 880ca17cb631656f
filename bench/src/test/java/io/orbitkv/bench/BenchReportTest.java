package io.orbitkv.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class BenchReportTest {
  @Test
  void shouldWriteEachFieldUnderItsName() {
    BenchCase with = new BenchCase("a", "ns", 3, 2.0, "C", BenchCase.Better.LOWER, 9);
    BenchCase without = new BenchCase("b", "1/s", 3, null, "missing", BenchCase.Better.HIGHER, 9);
    BenchReport report = new BenchReport("channel", "m", true, List.of(with, without));

    JsonNode json = new JsonMapper().readTree(report.toJson());

    assertThat(json.propertyNames()).containsExactly("name", "machine", "quiet", "cases");
    assertThat(json.at("/cases/0").propertyNames())
        .containsExactly(
            "case", "unit", "ours", "reference", "reference_name", "ratio", "better", "rounds");
    assertThat(json.at("/cases/0/ratio").doubleValue()).isEqualTo(1.5);
    assertThat(json.at("/cases/0/better").stringValue()).isEqualTo("lower");
    assertThat(json.at("/cases/1/reference").isNull()).isTrue();
    assertThat(json.at("/cases/1/ratio").isNull()).isTrue();
    assertThat(json.at("/cases/1/better").stringValue()).isEqualTo("higher");
  }

  @Test
  void shouldNameTheCasesThatAreWorseThanDemanded() {
    BenchCase met = new BenchCase("met", "ns", 114, 100.0, "C", BenchCase.Better.LOWER, 1);
    BenchCase slow = new BenchCase("slow", "ns", 116, 100.0, "C", BenchCase.Better.LOWER, 1);
    BenchCase rate = new BenchCase("rate", "1/s", 80, 100.0, "C", BenchCase.Better.HIGHER, 1);
    BenchCase none = new BenchCase("none", "ns", 0, 0.0, "nothing", BenchCase.Better.LOWER, 1);
    BenchCase alone = new BenchCase("alone", "ns", 1, null, "missing", BenchCase.Better.LOWER, 1);
    BenchCase nan = new BenchCase("nan", "ns", Double.NaN, 1.0, "C", BenchCase.Better.LOWER, 1);
    BenchReport report =
        new BenchReport("a", "m", true, List.of(met, slow, rate, none, alone, nan), 1.15);

    assertThat(report.missed()).containsExactly("slow", "rate", "alone", "nan");
    JsonNode json = new JsonMapper().readTree(report.toJson());
    assertThat(json.get("met").booleanValue()).isFalse();
    assertThat(json.get("most_ratio").doubleValue()).isEqualTo(1.15);
    assertThat(json.get("missed").size()).isEqualTo(4);
    assertThat(report.toTable()).contains("missed by slow, rate, alone, nan");
    assertThat(new BenchReport("a", "m", true, List.of(met), 1.15).missed()).isEmpty();
    assertThat(new BenchReport("a", "m", true, List.of(slow)).missed()).isEmpty();
  }

  @Test
  void shouldInterleaveInAlternatingOrderAndTakeMedians() throws IOException {
    List<String> order = new ArrayList<>();
    double[] ours = {100, 5, 1, 9};
    double[] others = {100, 2, 8, 4};
    int[] taken = new int[2];

    Rounds rounds =
        Rounds.run(
            0,
            3,
            () -> {
              order.add("ours");
              return ours[taken[0]++];
            },
            () -> {
              order.add("reference");
              return others[taken[1]++];
            });

    assertThat(order)
        .containsExactly(
            "reference", "ours", "reference", "ours", "ours", "reference", "reference", "ours");
    assertThat(rounds).isEqualTo(new Rounds(5, 4.0, 3));
  }

  @Test
  void shouldMeasureWithoutReference() throws IOException {
    assertThat(Rounds.run(0, 2, () -> 7, null)).isEqualTo(new Rounds(7, null, 2));
  }
}
