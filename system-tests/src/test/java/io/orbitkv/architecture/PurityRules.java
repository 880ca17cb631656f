package io.orbitkv.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.AccessTarget;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.lang.ArchRule;
import java.io.Serial;
import java.io.Serializable;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Set;
import java.util.random.RandomGenerator;

/** What a deterministic module must not touch; each rule over the classes of given packages. */
final class PurityRules {
  private static final Set<String> CLOCK_READS =
      Set.of("java.lang.System.nanoTime", "java.lang.System.currentTimeMillis");
  private static final Set<String> RANDOM_CALLS =
      Set.of(
          "java.lang.Math.random",
          "java.lang.StrictMath.random",
          "java.util.UUID.randomUUID",
          "java.util.Collections.shuffle",
          "java.lang.System.identityHashCode");
  private static final Set<String> ENVIRONMENT_READS =
      Set.of(
          "java.lang.System.getenv",
          "java.lang.System.getProperty",
          "java.lang.System.getProperties",
          "java.lang.Boolean.getBoolean",
          "java.lang.Integer.getInteger",
          "java.lang.Long.getLong");

  private PurityRules() {}

  /** All rules. */
  static List<ArchRule> all(String... packages) {
    return List.of(
        noThreads(packages),
        noClock(packages),
        noRandomness(packages),
        noInputOutput(packages),
        noEnvironment(packages));
  }

  private static DescribedPredicate<AccessTarget> calls(Set<String> methods) {
    return describe(
        "one of " + methods,
        target -> methods.contains(target.getOwner().getName() + "." + target.getName()));
  }

  private static ArchRule noUse(String[] packages, DescribedPredicate<JavaClass> of) {
    return noClasses().that(ours(packages)).should().dependOnClassesThat(of);
  }

  private static ArchRule noAccess(String[] packages, DescribedPredicate<AccessTarget> to) {
    return noClasses().that(ours(packages)).should().accessTargetWhere(access(to));
  }

  private static DescribedPredicate<com.tngtech.archunit.core.domain.JavaAccess<?>> access(
      DescribedPredicate<AccessTarget> to) {
    return describe("target is " + to.getDescription(), access -> to.test(access.getTarget()));
  }

  /** Generated messages are left out: protobuf gives them streams that nobody here calls. */
  private static DescribedPredicate<JavaClass> ours(String... packages) {
    return resideInAnyPackage(packages)
        .and(DescribedPredicate.not(resideInAnyPackage("io.orbitkv.channel.proto..")));
  }

  static ArchRule noThreads(String... packages) {
    return noUse(
        packages,
        assignableTo(Thread.class)
            .or(resideInAnyPackage("java.util.concurrent.."))
            .or(belongToAnyOf(ThreadLocal.class, java.util.Timer.class)));
  }

  static ArchRule noClock(String... packages) {
    DescribedPredicate<AccessTarget> now =
        describe(
            "now() of java.time",
            target ->
                target.getName().equals("now")
                    && target.getOwner().getPackageName().startsWith("java.time"));
    return com.tngtech.archunit.lang.CompositeArchRule.of(
            noAccess(packages, calls(CLOCK_READS).or(now)))
        .and(noUse(packages, assignableTo(Clock.class).or(assignableTo(java.util.Date.class))));
  }

  static ArchRule noRandomness(String... packages) {
    return com.tngtech.archunit.lang.CompositeArchRule.of(noAccess(packages, calls(RANDOM_CALLS)))
        .and(noUse(packages, assignableTo(RandomGenerator.class)));
  }

  /** {@link Path} is allowed, as a name. */
  static ArchRule noInputOutput(String... packages) {
    DescribedPredicate<JavaClass> harmless =
        belongToAnyOf(Serial.class, Serializable.class, Path.class);
    return noUse(
        packages,
        resideInAnyPackage("java.io..", "java.nio.file..", "java.nio.channels..", "java.net..")
            .or(belongToAnyOf(ProcessBuilder.class, ProcessHandle.class, Runtime.class))
            .and(DescribedPredicate.not(harmless)));
  }

  static ArchRule noEnvironment(String... packages) {
    return noAccess(packages, calls(ENVIRONMENT_READS));
  }
}
