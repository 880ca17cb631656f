package io.orbitkv.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A virtual environment with a real engine, and a small real model, in the user's cache folder.
 *
 * @param sources folder of the test bed's scripts in the checkout
 * @param folder the bed itself
 */
public record TestBed(Path sources, Path folder) {
  private static final String ROOT_PROPERTY = "orbitkv.root";

  /**
   * Finds the bed, or makes it, which takes minutes the first time; progress and what may be wrong
   * go to standard error.
   *
   * @throws IOException when there is no checkout, or the bed cannot be made
   */
  public static TestBed setUp() throws IOException {
    Path sources = findSources();
    Process process =
        new ProcessBuilder(List.of(sources.resolve("setup").toString()))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    process.getOutputStream().close();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      if (process.waitFor() != 0) {
        throw new IOException("the test bed could not be set up, see above");
      }
    } catch (InterruptedException e) {
      process.destroy();
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while the test bed was set up", e);
    }
    return new TestBed(sources, Path.of(said.lines().reduce("", (before, line) -> line)));
  }

  private static Path findSources() throws IOException {
    String root = System.getProperty(ROOT_PROPERTY);
    Path sources = root == null ? null : Path.of(root, "python", "testbed");
    if (sources == null || !Files.isExecutable(sources.resolve("setup"))) {
      throw new IOException(
          "an engine needs the test bed of the repository: run ./orbitkv of a checkout");
    }
    return sources;
  }

  /** Python of the virtual environment. */
  public Path python() {
    return folder.resolve("venv/bin/python");
  }

  /** Folder of the model. */
  public Path model() {
    return folder.resolve("model");
  }

  /** Value of {@code PYTHONPATH} with our package and the bed's scripts. */
  String pythonPath() {
    return sources.getParent() + ":" + sources;
  }

  /** Folders of the archives that the package needs, as it takes them from a checkout. */
  String jars() {
    Path app = sources.getParent().resolveSibling("app");
    return String.join(
        ":",
        app.resolve("target").toString(),
        app.resolve("target/lib").toString(),
        app.resolve("src/main/launcher").toString());
  }
}
