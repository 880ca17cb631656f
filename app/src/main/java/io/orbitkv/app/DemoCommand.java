package io.orbitkv.app;

import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.linux.MemoryFacts;
import java.io.IOException;
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
            + " in a real engine, starts the engine again, and answers it again.")
final class DemoCommand implements Callable<Integer> {
  private static final long ENGINE_POOL_BYTES = 1L << 30;
  private static final String TRACE = "mooncake-conversation";

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
          "A real engine with a small real model: ${COMPLETION-CANDIDATES}. The first time this"
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

  private final List<AutoCloseable> running = new ArrayList<>();
  private boolean ended;

  @Override
  public Integer call() throws IOException, InterruptedException {
    long pool = poolSize != null ? poolSize.bytes() : defaultPoolBytes();
    Thread hook = new Thread(this::end, "orbitkv-demo-end");
    Runtime.getRuntime().addShutdownHook(hook);
    try {
      System.err.println("starting a Manager with a pool of " + ByteSize.format(pool));
      List<String> command = SelfCommand.line();
      ManagerProcess manager = startManager(command, pool);
      if (engineKind == EngineKind.VLLM) {
        return new VllmDemo(this::addRunning).play(manager);
      }
      System.err.println("playing " + TRACE + " from an engine process");
      return startReplay(command, manager).waitFor();
    } finally {
      end();
    }
  }

  private long defaultPoolBytes() throws IOException {
    return engineKind == null ? MemoryFacts.read().freeBytes() / 2 : ENGINE_POOL_BYTES;
  }

  private synchronized void addRunning(AutoCloseable child) {
    running.add(child);
  }

  private synchronized ManagerProcess startManager(List<String> command, long pool)
      throws IOException {
    checkNotEnded();
    ManagerProcess manager = ManagerProcess.start(command, pool);
    running.add(manager);
    return manager;
  }

  private synchronized Process startReplay(List<String> command, ManagerProcess manager)
      throws IOException {
    checkNotEnded();
    List<String> line = new ArrayList<>(command);
    line.addAll(List.of("replay", TRACE, "--socket", manager.socket().toString()));
    line.addAll(List.of("--block-bytes", Long.toString(blockBytes.bytes())));
    line.addAll(List.of("--limit", Integer.toString(limit)));
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
