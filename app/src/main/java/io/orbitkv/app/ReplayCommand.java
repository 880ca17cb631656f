package io.orbitkv.app;

import io.orbitkv.bench.replay.Replay;
import io.orbitkv.bench.replay.ReplayOptions;
import io.orbitkv.bench.replay.ReplayResult;
import io.orbitkv.bench.replay.Trace;
import io.orbitkv.bench.replay.TraceException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Plays a request trace against a running Manager. */
@Command(
    name = "replay",
    description = "Plays a request trace against a running Manager and compares every byte.")
final class ReplayCommand implements Callable<Integer> {
  /** Bytes of a block when none are chosen. */
  static final String DEFAULT_BLOCK_BYTES = "64kb";

  private static final int MIN_BLOCK_BYTES = 8;
  private static final int MAX_BLOCK_BYTES = 256 << 20;

  @Parameters(
      paramLabel = "TRACE",
      description = "A file, or mooncake-conversation or mooncake-synthetic.")
  private String trace;

  @Mixin private SocketOption socket;

  @Option(
      names = "--block-bytes",
      paramLabel = "SIZE",
      description = "Bytes of a block. Default: " + DEFAULT_BLOCK_BYTES + ".")
  private ByteSize blockBytes = ByteSize.parse(DEFAULT_BLOCK_BYTES);

  @Option(
      names = "--skip",
      paramLabel = "N",
      description = "Do not play the first requests. Default: 0.")
  private int skip;

  @Option(
      names = "--limit",
      paramLabel = "N",
      description = "Play the first requests only. Default: all.")
  private int limit = Integer.MAX_VALUE;

  @Option(
      names = "--seed",
      paramLabel = "N",
      description = "Seed of the blocks' hashes and bytes. Default: 1.")
  private long seed = 1;

  @Option(
      names = "--json",
      paramLabel = "FILE",
      description = "Write the result as JSON; - is standard output.")
  private JsonFile json;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    check(
        blockBytes.bytes() >= MIN_BLOCK_BYTES && blockBytes.bytes() <= MAX_BLOCK_BYTES,
        "--block-bytes=" + blockBytes.bytes(),
        MIN_BLOCK_BYTES + ".." + MAX_BLOCK_BYTES);
    check(limit >= 1, "--limit=" + limit, "1 and more");
    check(skip >= 0, "--skip=" + skip, "0 and more");
    Trace requests = open().skip(skip).limit(limit);
    check(!requests.requests().isEmpty(), "--skip=" + skip, "less than the trace's requests");
    ReplayOptions options =
        new ReplayOptions(
            socket.path(), Math.toIntExact(blockBytes.bytes()), seed, errorIsTerminal());
    ReplayResult result = new Replay(requests, options).run();
    if (json != null) {
      json.write(result.toJson());
    }
    if (json == null || !json.isStandardOutput()) {
      System.out.print(result.toTable());
    }
    return result.isClean() ? 0 : Main.FAILED;
  }

  private Trace open() {
    try {
      return Trace.open(trace);
    } catch (TraceException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  private void check(boolean rule, String value, String allowed) {
    if (!rule) {
      throw new ParameterException(spec.commandLine(), value + ", allowed: " + allowed);
    }
  }

  private static boolean errorIsTerminal() {
    try {
      String target = Files.readSymbolicLink(Path.of("/proc/self/fd/2")).toString();
      return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
    } catch (IOException e) {
      return false;
    }
  }
}
