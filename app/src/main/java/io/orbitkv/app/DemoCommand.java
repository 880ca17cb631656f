package io.orbitkv.app;

import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.bench.ManagerStatus;
import io.orbitkv.bench.replay.Trace;
import io.orbitkv.linux.MemoryFacts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Starts a Manager and plays a trace against it from a second process, or a prompt in an engine.
 */
@Command(
    name = "demo",
    description =
        "Starts a Manager in a private directory, plays a production trace against it from a"
            + " separate engine process, and prints what came of it. With --engine it answers a prompt"
            + " in a real engine, starts the engine again, and answers it again. With --ssd the"
            + " Manager is restarted in the middle, and serves on from its SSD tier.")
final class DemoCommand implements Callable<Integer> {
  private static final long ENGINE_POOL_BYTES = 1L << 30;
  private static final String TRACE = "mooncake-conversation";
  private static final String DEFAULT_SSD_CAPACITY = "8gb";
  private static final long SSD_POOL_BYTES = 1L << 30;

  /** Real engines. */
  enum EngineKind {
    /** Of the CPU backend. */
    VLLM;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Option(
      names = "--engine",
      paramLabel = "NAME",
      description =
          "A real engine with a small real model: vllm. The first time this"
              + " downloads 1 GB into the user's cache folder. Default: none.")
  private EngineKind engineKind;

  @Option(
      names = "--pool-size",
      paramLabel = "SIZE",
      description = "Size of the pool. Default: half of the free memory; 1 GB with an engine.")
  private ByteSize poolSize;

  @Option(
      names = "--block-bytes",
      paramLabel = "SIZE",
      description = "Bytes of a block. Default: " + ReplayCommand.DEFAULT_BLOCK_BYTES + ".")
  private ByteSize blockBytes = ByteSize.parse(ReplayCommand.DEFAULT_BLOCK_BYTES);

  @Option(
      names = "--limit",
      paramLabel = "N",
      description = "Play the first requests only. Default: all.")
  private int limit = Integer.MAX_VALUE;

  @Option(
      names = "--ssd",
      description = "Give the Manager an SSD tier and restart it in the middle of the trace.")
  private boolean ssd;

  @Option(
      names = "--ssd-cache-path",
      paramLabel = "DIR",
      description = "Where the demo makes its SSD file. Default: the folder for temporary files.")
  private Path ssdParent = Path.of(System.getProperty("java.io.tmpdir"));

  @Option(
      names = "--ssd-cache-capacity",
      paramLabel = "SIZE",
      description = "Size of the SSD file. Default: " + DEFAULT_SSD_CAPACITY + ".")
  private ByteSize ssdCapacity = ByteSize.parse(DEFAULT_SSD_CAPACITY);

  private final List<AutoCloseable> running = new ArrayList<>();
  private boolean ended;

  @Override
  public Integer call() throws IOException, InterruptedException {
    Thread hook = new Thread(this::end, "orbitkv-demo-end");
    Runtime.getRuntime().addShutdownHook(hook);
    try {
      if (engineKind == EngineKind.VLLM) {
        long pool = poolBytes(ENGINE_POOL_BYTES);
        System.err.println("starting a Manager with a pool of " + ByteSize.format(pool));
        return new VllmDemo(this::addRunning).play(startManager(pool));
      }
      return ssd ? playWithRestart() : play(poolBytes(Long.MAX_VALUE));
    } finally {
      end();
    }
  }

  private synchronized void addRunning(AutoCloseable child) {
    running.add(child);
  }

  private long poolBytes(long most) throws IOException {
    return poolSize != null ? poolSize.bytes() : Math.min(most, MemoryFacts.read().freeBytes() / 2);
  }

  private int play(long pool) throws IOException, InterruptedException {
    System.err.println("starting a Manager with a pool of " + ByteSize.format(pool));
    ManagerProcess manager = startManager(pool);
    System.err.println("playing " + TRACE + " from an engine process");
    return startReplay(manager, 0, limit).waitFor();
  }

  /** Plays the first half, restarts the Manager on its SSD file, and plays the second half. */
  private int playWithRestart() throws IOException, InterruptedException {
    int requests = Trace.open(TRACE).limit(limit).requests().size();
    int half = Math.max(1, requests / 2);
    long pool = poolBytes(SSD_POOL_BYTES);
    Path directory = makeSsdDirectory();
    String[] flags = {
      "--ssd-cache-path", directory.toString(),
      "--ssd-cache-capacity", Long.toString(ssdCapacity.bytes())
    };
    System.err.println(
        "starting a Manager with a pool of "
            + ByteSize.format(pool)
            + " and "
            + ByteSize.format(ssdCapacity.bytes())
            + " on SSD in "
            + directory);
    ManagerProcess manager = startManager(pool, flags);
    System.err.println("playing the first " + half + " requests of " + TRACE);
    int code = startReplay(manager, 0, half).waitFor();
    if (code != 0) {
      return code;
    }
    System.err.println("restarting the Manager");
    stop(manager);
    ManagerProcess next = startManager(pool, flags);
    long found = ManagerStatus.read(next.socket()).number("ssd", "recovered", "blocks");
    System.out.printf(Locale.ROOT, "%nblocks found on SSD after the restart: %,d%n%n", found);
    System.err.println("playing the other " + (requests - half) + " requests");
    code = startReplay(next, half, requests - half).waitFor();
    ManagerStatus status = ManagerStatus.read(next.socket());
    System.out.printf(
        Locale.ROOT,
        "loaded from SSD     %,d blocks, wrong checksums %,d%n",
        status.number("ssd", "read_blocks_total"),
        status.number("ssd", "crc_failures_total"));
    return code == 0 && found == 0 ? Main.FAILED : code;
  }

  private synchronized Path makeSsdDirectory() throws IOException {
    checkNotEnded();
    Path directory = Files.createTempDirectory(ssdParent, "orbitkv-ssd-");
    running.add(() -> {
      Files.deleteIfExists(directory.resolve("orbitkv.ssd"));
      Files.delete(directory);
    });
    return directory;
  }

  private synchronized ManagerProcess startManager(long pool, String... flags) throws IOException {
    checkNotEnded();
    ManagerProcess manager = ManagerProcess.start(SelfCommand.line(), pool, flags);
    running.add(manager);
    return manager;
  }

  private synchronized void stop(ManagerProcess manager) {
    running.remove(manager);
    manager.close();
  }

  private synchronized Process startReplay(ManagerProcess manager, int skip, int count)
      throws IOException {
    checkNotEnded();
    List<String> line = new ArrayList<>(SelfCommand.line());
    line.addAll(List.of("replay", TRACE, "--socket", manager.socket().toString()));
    line.addAll(List.of("--block-bytes", Long.toString(blockBytes.bytes())));
    line.addAll(List.of("--skip", Integer.toString(skip)));
    line.addAll(List.of("--limit", Integer.toString(count)));
    ProcessBuilder builder = new ProcessBuilder(line).inheritIO();
    builder.environment().keySet().removeIf(name -> name.startsWith("ORBITKV_"));
    Process engine = builder.start();
    running.add(() -> engine.destroyForcibly().waitFor());
    return engine;
  }

  private void checkNotEnded() throws IOException {
    if (ended) {
      throw new IOException("the demo was ended");
    }
  }

  /** Ends the children, the last one first; idempotent. */
  private synchronized void end() {
    ended = true;
    while (!running.isEmpty()) {
      try {
        running.removeLast().close();
      } catch (Exception e) {
        System.err.println("orbitkv: a child process could not be ended: " + e.getMessage());
      }
    }
  }
}
