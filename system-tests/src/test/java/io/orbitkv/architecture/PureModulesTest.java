package io.orbitkv.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import java.io.File;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.Executors;
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

    assertThat(violates(threads, StartsThread.class)).isTrue();
    assertThat(violates(threads, MakesExecutor.class)).isTrue();
    assertThat(violates(clock, ReadsNanoTime.class)).isTrue();
    assertThat(violates(clock, ReadsInstant.class)).isTrue();
    assertThat(violates(clock, HoldsClock.class)).isTrue();
    assertThat(violates(randomness, CallsMathRandom.class)).isTrue();
    assertThat(violates(randomness, CallsRandomUuid.class)).isTrue();
    assertThat(violates(randomness, UsesSecureRandom.class)).isTrue();
    assertThat(violates(randomness, UsesSplittableRandom.class)).isTrue();
    assertThat(violates(inputOutput, UsesFile.class)).isTrue();
    assertThat(violates(inputOutput, UsesProcess.class)).isTrue();
    assertThat(violates(environment, ReadsEnvironment.class)).isTrue();
    assertThat(violates(environment, ReadsProperty.class)).isTrue();
    for (ArchRule rule : PurityRules.all(here)) {
      assertThat(violates(rule, Harmless.class)).as(rule.getDescription()).isFalse();
    }
  }

  private static final class StartsThread {
    Object value = Thread.currentThread();
  }

  private static final class MakesExecutor {
    Object value = Executors.newSingleThreadExecutor();
  }

  private static final class ReadsNanoTime {
    long value = System.nanoTime();
  }

  private static final class ReadsInstant {
    Object value = Instant.now();
  }

  private static final class HoldsClock {
    Clock value;
  }

  private static final class CallsMathRandom {
    double value = Math.random();
  }

  private static final class CallsRandomUuid {
    Object value = UUID.randomUUID();
  }

  private static final class UsesSecureRandom {
    Object value = new SecureRandom();
  }

  private static final class UsesSplittableRandom {
    Object value = new SplittableRandom(1);
  }

  private static final class UsesFile {
    Object value = new File("x");
  }

  private static final class UsesProcess {
    Object value = ProcessHandle.current();
  }

  private static final class ReadsEnvironment {
    Object value = System.getenv("X");
  }

  private static final class ReadsProperty {
    Object value = System.getProperty("x");
  }

  private static final class Harmless {
    Object value = ByteBuffer.allocate(8);
    Instant time = Instant.ofEpochSecond(1);
  }
}
