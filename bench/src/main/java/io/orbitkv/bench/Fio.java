package io.orbitkv.bench;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The reference of storage benchmarks, where it is installed: direct I/O by io_uring on a part of a
 * file.
 *
 * @see <a href="https://fio.readthedocs.io/en/latest/fio_doc.html">fio</a>
 */
final class Fio {
  private static final long BOUND_SECONDS = 120;

  private final Path file;
  private final long offset;
  private final long bytes;
  private final boolean installed;

  Fio(Path file, long offset, long bytes) {
    this.file = file;
    this.offset = offset;
    this.bytes = bytes;
    this.installed =
        Stream.of(System.getenv("PATH").split(File.pathSeparator, -1))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, "fio")));
  }

  boolean isInstalled() {
    return installed;
  }

  String label() {
    return installed ? "fio, io_uring, O_DIRECT, same file" : "missing: fio is not installed";
  }

  /** Writes its part once, so that reads find written blocks. */
  void fill(int blockBytes) throws IOException {
    if (installed) {
      run(List.of("--rw=write", "--bs=" + blockBytes, "--iodepth=8", "--loops=1"));
    }
  }

  /** Bytes a second. */
  double rate(boolean write, int blockBytes, int depth, long forNs) throws IOException {
    JsonNode job =
        run(
            List.of(
                write ? "--rw=write" : "--rw=read",
                "--bs=" + blockBytes,
                "--iodepth=" + depth,
                "--time_based",
                "--runtime=" + TimeUnit.NANOSECONDS.toMillis(forNs) + "ms"));
    return job.path(write ? "write" : "read").path("bw_bytes").asDouble();
  }

  private JsonNode run(List<String> flags) throws IOException {
    List<String> line = new java.util.ArrayList<>(List.of("fio", "--name=orbitkv"));
    line.addAll(List.of("--filename=" + file, "--offset=" + offset, "--size=" + bytes));
    // Memory mapped in whole pages, as ours is: that of malloc is read half as fast.
    line.addAll(
        List.of("--direct=1", "--ioengine=io_uring", "--iomem=mmap", "--output-format=json"));
    line.addAll(flags);
    Process process =
        new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try {
      byte[] output = process.getInputStream().readAllBytes();
      if (!process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
        throw new IOException("fio failed: " + String.join(" ", line));
      }
      return new JsonMapper().readTree(output).path("jobs").path(0);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while fio ran", e);
    } finally {
      process.destroyForcibly();
    }
  }
}
