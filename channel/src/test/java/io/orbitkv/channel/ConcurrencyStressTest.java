package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Runs the jcstress tests of this package, each in processes of its own: what must hold holds, and
 * its weakened twin shows the fault, so that the test could have seen it.
 */
class ConcurrencyStressTest {
  private static final Pattern FAULT_SEEN =
      Pattern.compile("^ *[^ ].*? +[1-9][0-9,]* +[<0-9.]+% +Interesting ", Pattern.MULTILINE);
  private static final int BOUND_MINUTES = 4;
  private static final long TRY_NS = TimeUnit.MINUTES.toNanos(2);

  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource({
    "GrantCasStress, Moves",
    "RingPublicationStress, Ring",
    "SleepFlagStress, Announcement",
    "SpanGenerationStress, Span"
  })
  void shouldHoldWhereTheWeakenedTwinFails(String test, String variant) throws Exception {
    String kept = run(test + "[.$]" + variant);
    String weakened = runUntilFaultSeen(test + "[.$]Weakened" + variant);

    assertThat(kept).contains("[OK] io.orbitkv.channel." + test + "." + variant);
    assertThat(kept).doesNotContain("[FAILED]").doesNotContain("[ERROR]");
    assertThat(weakened).contains("[OK] io.orbitkv.channel." + test + ".Weakened" + variant);
    assertThat(weakened).containsPattern(FAULT_SEEN);
  }

  /** A fault that needs both actors on a processor at once may hide on a busy machine. */
  private String runUntilFaultSeen(String test) throws IOException, InterruptedException {
    long deadline = System.nanoTime() + TRY_NS;
    String output;
    do {
      output = run(test);
    } while (!FAULT_SEEN.matcher(output).find() && System.nanoTime() < deadline);
    return output;
  }

  private String run(String test) throws IOException, InterruptedException {
    Path output = folder.resolve(test + ".txt");
    Process process =
        new ProcessBuilder(command("io[.]orbitkv[.]channel[.]" + test + "$"))
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      assertThat(process.waitFor(BOUND_MINUTES, TimeUnit.MINUTES))
          .as("ends within minutes=%d: %s", BOUND_MINUTES, test)
          .isTrue();
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
    String text = Files.readString(output);
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }

  private List<String> command(String test) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("--enable-native-access=ALL-UNNAMED");
    command.addAll(List.of("-cp", classPath(), "org.openjdk.jcstress.Main"));
    command.addAll(List.of("-t", test, "-v", "-r", folder.resolve("report").toString()));
    // two actors on as many processors, one way of compiling, seconds a test
    command.addAll(List.of("-c", "2", "-sc", "false", "-f", "1", "-fsm", "1"));
    command.addAll(List.of("-time", "500", "-iters", "4"));
    command.addAll(List.of("-strideSize", "16", "-strideCount", "8")); // regions are large
    command.addAll(
        List.of("-jvmArgs", "-Xmx256m -XX:+UseSerialGC --enable-native-access=ALL-UNNAMED"));
    return command;
  }

  /**
   * Surefire gives the class path in the manifest of a jar, which children of children need too.
   */
  private static String classPath() {
    String path = System.getProperty("surefire.test.class.path");
    return path != null ? path : System.getProperty("java.class.path");
  }
}
