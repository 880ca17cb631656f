package io.orbitkv.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The core and the channel have no thread, clock, randomness, input or output, or environment. */
class PureModulesTest {
  @ParameterizedTest
  @ValueSource(strings = {"io.orbitkv.core..", "io.orbitkv.channel.."})
  void shouldBePure(String module) {
    for (ArchRule rule : PurityRules.all(module)) {
      rule.check(ProductClasses.ALL);
    }
  }

  @Test
  void shouldRunTheSimulatorByItsSeedAlone() {
    String simulator = "io.orbitkv.bench.simulator..";
    PurityRules.noClock(simulator).check(ProductClasses.ALL);
    PurityRules.noRandomness(simulator).check(ProductClasses.ALL);
    PurityRules.noEnvironment(simulator).check(ProductClasses.ALL);
  }

  private static boolean violates(ArchRule rule, Class<?> type) {
    return rule.evaluate(new ClassFileImporter().importClasses(type)).hasViolation();
  }

  @Test
  void shouldFindWhatIsForbidden() {
    String here = getClass().getPackageName();
    ArchRule threads = PurityRules.noThreads(here);
    ArchRule clock = PurityRules.noClock(here);
    ArchRule randomness = PurityRules.noRandomness(here);
    ArchRule inputOutput = PurityRules.noInputOutput(here);
    ArchRule environment = PurityRules.noEnvironment(here);

    assertThat(violates(threads, Impure.StartsThread.class)).isTrue();
    assertThat(violates(threads, Impure.MakesExecutor.class)).isTrue();
    assertThat(violates(clock, Impure.ReadsNanoTime.class)).isTrue();
    assertThat(violates(clock, Impure.ReadsInstant.class)).isTrue();
    assertThat(violates(clock, Impure.HoldsClock.class)).isTrue();
    assertThat(violates(randomness, Impure.CallsMathRandom.class)).isTrue();
    assertThat(violates(randomness, Impure.CallsRandomUuid.class)).isTrue();
    assertThat(violates(randomness, Impure.UsesSecureRandom.class)).isTrue();
    assertThat(violates(randomness, Impure.UsesSplittableRandom.class)).isTrue();
    assertThat(violates(inputOutput, Impure.UsesFile.class)).isTrue();
    assertThat(violates(inputOutput, Impure.UsesProcess.class)).isTrue();
    assertThat(violates(environment, Impure.ReadsEnvironment.class)).isTrue();
    assertThat(violates(environment, Impure.ReadsProperty.class)).isTrue();
    for (ArchRule rule : PurityRules.all(here)) {
      assertThat(violates(rule, Impure.Harmless.class)).as(rule.getDescription()).isFalse();
    }
  }
}
