package io.orbitkv.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Each module uses only the modules named behind it. */
class ModuleArrowsTest {
  private static final String ROOT = "io.orbitkv.";

  private static String[] packages(Stream<String> modules) {
    return modules.map(module -> ROOT + module + "..").toArray(String[]::new);
  }

  @ParameterizedTest(name = "{0} uses {1}")
  @CsvSource({
    "linux,       ''",
    "channel,     ''",
    "core,        channel",
    "device,      linux",
    "client,      channel device linux",
    "storage,     core linux",
    "manager,     storage core channel device linux",
    "bench,       manager client storage core channel linux",
    "app,         bench manager client storage core device channel linux",
  })
  void shouldUseOnlyModulesBelow(String module, String used) {
    Stream<String> below = Arrays.stream(used.split(" ")).filter(name -> !name.isEmpty());
    String[] allowed = packages(Stream.concat(Stream.of(module), below));

    noClasses()
        .that()
        .resideInAPackage(ROOT + module + "..")
        .should()
        .dependOnClassesThat(resideInAPackage("io.orbitkv..").and(not(resideInAnyPackage(allowed))))
        .check(ProductClasses.ALL);
  }

  @Test
  void shouldNameEveryModule() {
    Set<String> modules = new TreeSet<>();
    for (JavaClass type : ProductClasses.ALL) {
      modules.add(type.getPackageName().substring(ROOT.length()).replaceFirst("\\..*", ""));
    }

    assertThat(modules)
        .containsExactly(
            "app",
            "bench",
            "channel",
            "client",
            "core",
            "device",
            "linux",
            "manager",
            "storage",
            "testsupport");
  }

  @Test
  void shouldHaveNoCycleOfPackages() {
    SlicesRuleDefinition.slices()
        .matching("io.orbitkv.(**)")
        .should()
        .beFreeOfCycles()
        .check(ProductClasses.ALL);
  }

  @Test
  void shouldKeepProtobufToLifecycleFrames() {
    noClasses()
        .that()
        .resideInAnyPackage(
            "io.orbitkv.core..",
            "io.orbitkv.linux..",
            "io.orbitkv.device..",
            "io.orbitkv.storage..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("com.google.protobuf..")
        .check(ProductClasses.ALL);
  }

  @Test
  void shouldUseOnlyJdkBelowManager() {
    classes()
        .that()
        .resideInAnyPackage(
            "io.orbitkv.linux..",
            "io.orbitkv.device..",
            "io.orbitkv.core..",
            "io.orbitkv.storage..")
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage("java..", "io.orbitkv..")
        .check(ProductClasses.ALL);
    classes()
        .that()
        .resideInAnyPackage("io.orbitkv.channel..", "io.orbitkv.client..")
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage("java..", "io.orbitkv..", "com.google.protobuf..")
        .check(ProductClasses.ALL);
  }

  @Test
  void shouldCallNativeCodeOnlyThroughLinuxAndDevice() {
    noClasses()
        .that()
        .resideOutsideOfPackages(
            "io.orbitkv.linux..", "io.orbitkv.device..", "io.orbitkv.testsupport..")
        .should()
        .dependOnClassesThat()
        .belongToAnyOf(Linker.class, SymbolLookup.class)
        .check(ProductClasses.ALL);
  }
}
