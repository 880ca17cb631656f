package io.orbitkv.app;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Builds the wheel of the Python package: its sources, and the archives that this program runs. */
@Command(
    name = "package",
    description =
        "Builds the wheel of the Python package, from a checkout. Needs python3 with pip.")
final class PackageCommand implements Callable<Integer> {
  /** Set by the script of a checkout: its folder. */
  static final String ROOT_PROPERTY = "orbitkv.root";

  private static final long BUILD_MINUTES = 5;

  @Option(
      names = "--output",
      paramLabel = "FOLDER",
      description = "Where the wheel goes; by default python/dist of the checkout.")
  private Path output;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException, InterruptedException {
    String named = System.getProperty(ROOT_PROPERTY);
    if (named == null) {
      throw new IOException("package: only ./orbitkv of a checkout can build the wheel");
    }
    Path root = Path.of(named);
    Path wheels =
        (output == null ? root.resolve("python").resolve("dist") : output).toAbsolutePath();
    Files.createDirectories(wheels);
    Path stage = Files.createTempDirectory("orbitkv-package");
    try {
      stage(root, stage);
      build(stage, wheels);
    } finally {
      delete(stage);
    }
    PrintWriter out = spec.commandLine().getOut();
    try (Stream<Path> built = Files.list(wheels)) {
      built
          .filter(path -> path.toString().endsWith(".whl"))
          .max(Comparator.comparingLong(path -> path.toFile().lastModified()))
          .ifPresent(out::println);
    }
    out.flush();
    return 0;
  }

  /** Lays out what the wheel is built from. */
  static void stage(Path root, Path stage) throws IOException {
    Path python = root.resolve("python");
    copyTree(python.resolve("orbitkv"), stage.resolve("orbitkv"));
    copy(python.resolve("pyproject.toml"), stage.resolve("pyproject.toml"));
    copy(root.resolve("LICENSE"), stage.resolve("LICENSE"));
    Path jars = stage.resolve("orbitkv").resolve("jars");
    copy(root.resolve("app/src/main/launcher/jvm.options"), jars.resolve("jvm.options"));
    copy(root.resolve("app/target/orbitkv.jar"), jars.resolve("orbitkv.jar"));
    copyTree(root.resolve("app/target/lib"), jars);
  }

  private static void copyTree(Path from, Path to) throws IOException {
    try (Stream<Path> files = Files.walk(from)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        if (!file.toString().contains("__pycache__")) {
          copy(file, to.resolve(from.relativize(file).toString()));
        }
      }
    }
  }

  private static void copy(Path from, Path to) throws IOException {
    Files.createDirectories(to.getParent());
    Files.copy(from, to, StandardCopyOption.REPLACE_EXISTING);
  }

  private static void build(Path stage, Path wheels) throws IOException, InterruptedException {
    Path log = stage.resolve("build.log");
    List<String> line = new ArrayList<>(List.of("python3", "-m", "pip", "wheel", "--no-deps"));
    line.addAll(List.of("--wheel-dir", wheels.toString(), stage.toString()));
    Process pip =
        new ProcessBuilder(line)
            .directory(stage.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    try {
      if (!pip.waitFor(BUILD_MINUTES, TimeUnit.MINUTES)) {
        throw new IOException("package: pip did not end within " + BUILD_MINUTES + " minutes");
      }
      if (pip.exitValue() != 0) {
        throw new IOException(
            "package: pip ended with " + pip.exitValue() + ": " + Files.readString(log));
      }
    } finally {
      pip.destroyForcibly();
    }
  }

  private static void delete(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }
}
