package io.orbitkv.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The reference programs in C, compiled when first asked for where there is a C compiler. Belongs
 * to one thread.
 */
final class Reference implements AutoCloseable {
  private static final long BOUND_SECONDS = 120;

  /** Where the programs are; null until one is compiled. */
  private Path directory;

  private final Map<String, Path> programs = new HashMap<>();

  /** Whether the program can be run; compiles it. */
  boolean has(String name) throws IOException {
    return program(name) != null;
  }

  private Path program(String name) throws IOException {
    if (!programs.containsKey(name)) {
      programs.put(name, compile(name));
    }
    return programs.get(name);
  }

  /** Name of a reference, or that it is missing. */
  String label(String name, String what) throws IOException {
    return has(name) ? what : "missing: no C compiler";
  }

  private Path compile(String name) throws IOException {
    if (directory == null) {
      directory = Files.createTempDirectory("orbitkv-reference-");
    }
    Path source = directory.resolve(name + ".c");
    Path program = directory.resolve(name);
    try (InputStream in = Reference.class.getResourceAsStream("/reference/" + name + ".c")) {
      Files.copy(in, source);
    }
    List<String> command = List.of("-O3", "-march=native", "-pthread", "-o", program.toString());
    for (String compiler : List.of("cc", "gcc", "clang")) {
      List<String> line = new ArrayList<>(List.of(compiler));
      line.addAll(command);
      line.add(source.toString());
      if (isInstalled(compiler) && await(new ProcessBuilder(line).inheritIO().start()) == 0) {
        return program;
      }
    }
    return null;
  }

  private static boolean isInstalled(String program) {
    return Stream.of(System.getenv("PATH").split(":", -1))
        .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
  }

  /** Runs a program to its end; its output as numbers by name. */
  Map<String, Double> run(String name, Object... arguments) throws IOException {
    Process process = start(name, arguments);
    Map<String, Double> result = new HashMap<>();
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        int space = line.indexOf(' ');
        result.put(line.substring(0, space), Double.parseDouble(line.substring(space + 1)));
      }
    }
    int code = await(process);
    if (code != 0) {
      throw new IOException("reference " + name + " ended with code=" + code);
    }
    return result;
  }

  /** Seconds from the start of a program to the first line that it prints. */
  double secondsToFirstLine(String name, Object... arguments) throws IOException {
    long start = System.nanoTime();
    Process process = start(name, arguments);
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      if (lines.readLine() == null) {
        throw new IOException("reference " + name + " printed nothing");
      }
      return (System.nanoTime() - start) / 1e9;
    } finally {
      await(process);
    }
  }

  private Process start(String name, Object... arguments) throws IOException {
    List<String> line = new ArrayList<>(List.of(program(name).toString()));
    for (Object argument : arguments) {
      line.add(argument.toString());
    }
    return new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  private static int await(Process process) throws IOException {
    try {
      if (process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS)) {
        return process.exitValue();
      }
      throw new IOException("reference did not end within " + BOUND_SECONDS + " s");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while a reference ran", e);
    } finally {
      process.destroyForcibly();
    }
  }

  /** Starts a program that answers each line of its input with one number. */
  Conversation converse(String name, Object... arguments) throws IOException {
    return new Conversation(start(name, arguments));
  }

  /** A running program that answers lines. */
  static final class Conversation implements AutoCloseable {
    private final Process process;
    private final Writer questions;
    private final BufferedReader answers;

    private Conversation(Process process) {
      this.process = process;
      this.questions = process.outputWriter(StandardCharsets.UTF_8);
      this.answers =
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    double ask(String line) throws IOException {
      questions.write(line + "\n");
      questions.flush();
      String answer = answers.readLine();
      if (answer == null) {
        throw new IOException("reference ended before it answered: " + line);
      }
      return Double.parseDouble(answer);
    }

    @Override
    public void close() throws IOException {
      try (answers) {
        questions.close();
      } finally {
        process.destroyForcibly();
      }
    }
  }

  @Override
  public void close() throws IOException {
    if (directory == null) {
      return;
    }
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(directory);
  }
}
