package io.orbitkv.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/dependencies.md names exactly the dependencies that the modules have. */
class DependencyPageTest {
  private static final Path ROOT = Path.of(System.getProperty("basedir", "."), "..");
  private static final Pattern MANAGED =
      Pattern.compile("<dependencyManagement>.*</dependencyManagement>", Pattern.DOTALL);
  private static final Pattern DEPENDENCY =
      Pattern.compile(
          "<dependency>\\s*<groupId>([^<]+)</groupId>\\s*<artifactId>([^<]+)</artifactId>");
  private static final Pattern ROW = Pattern.compile("(?m)^\\| ([A-Za-z0-9-]+) \\|");

  private static Set<String> used() throws IOException {
    Set<String> names = new TreeSet<>();
    try (Stream<Path> poms = Files.find(ROOT, 2, (path, facts) -> path.endsWith("pom.xml"))) {
      for (Path pom : poms.toList()) {
        String text = MANAGED.matcher(Files.readString(pom)).replaceAll("");
        Matcher dependency = DEPENDENCY.matcher(text);
        while (dependency.find()) {
          if (!dependency.group(1).equals("io.orbitkv")) {
            names.add(dependency.group(2));
          }
        }
      }
    }
    return names;
  }

  @Test
  void shouldNameEveryDependency() throws IOException {
    String page = Files.readString(ROOT.resolve("docs").resolve("dependencies.md"));
    Set<String> named = new TreeSet<>();
    Matcher row = ROW.matcher(page.substring(0, page.indexOf("## For the build")));
    while (row.find()) {
      named.add(row.group(1));
    }
    named.remove("dependency");

    assertThat(named).isEqualTo(used());
  }
}
