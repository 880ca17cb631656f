package io.orbitkv.app;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.linux.MemoryFacts;
import io.orbitkv.manager.Manager;
import io.orbitkv.manager.ManagerConfig;
import io.orbitkv.manager.ManagerException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Runs a Manager in the foreground until it is asked to end. */
@Command(
    name = "manager",
    description = "Runs a Cache Manager in the foreground; SIGTERM and SIGINT drain and end it.")
final class ManagerCommand implements Callable<Integer> {
  private static final Duration READY_BOUND = Duration.ofMinutes(10);
  private static final int MAX_PORT = 65_535;

  /** Levels of the log. */
  enum LogLevel {
    /** Failures only. */
    ERROR,
    /** What an operator should look at. */
    WARN,
    /** Changes of state. */
    INFO,
    /** Each step of the control path. */
    DEBUG,
    /** Everything. */
    TRACE
  }

  @Option(
      names = "--pool-size",
      paramLabel = "SIZE",
      description = "Size of the pool. Default: half of the free memory.")
  private ByteSize poolSize;

  @Option(
      names = "--pool-shards",
      paramLabel = "N",
      description = "Arenas that the pool is made of. Default: 1.")
  private int poolShards = 1;

  @Mixin private SocketOption socket;

  @Option(
      names = "--http-addr",
      paramLabel = "HOST:PORT",
      description =
          "Address of health and metrics; port 0 is any free one. Default: 127.0.0.1:9091.")
  private String httpAddr = "127.0.0.1:" + ManagerConfig.DEFAULT_HTTP_PORT;

  @Option(
      names = "--query-budget",
      paramLabel = "SIZE",
      description = "Most bytes that leases pin. Default: three quarters of the pool.")
  private ByteSize queryBudget = new ByteSize(0);

  @Option(
      names = "--query-instance-budget",
      paramLabel = "SIZE",
      description = "Most bytes that leases of one instance pin. Default: as for all.")
  private ByteSize queryInstanceBudget = new ByteSize(0);

  @Option(
      names = "--use-hugepages",
      description = "Make the pool of reserved pages of 2 MiB; ends when there are too few.")
  private boolean useHugepages;

  @Option(
      names = "--log-level",
      paramLabel = "LEVEL",
      description = "error, warn, info, debug or trace. Default: info.")
  private LogLevel logLevel = LogLevel.INFO;

  @Option(
      names = "--allow-uid",
      paramLabel = "UID",
      split = ",",
      description = "User that may connect; may be repeated. Default: the Manager's own.")
  private Set<Integer> allowUid = Set.of();

  @Option(
      names = "--drain-timeout",
      paramLabel = "SECONDS",
      description = "Most time that an end waits for copies in progress. Default: 10.")
  private int drainTimeout = 10;

  @Option(names = "--stop-with-stdin", hidden = true)
  private boolean stopWithStdin;

  @Option(names = "--exit-when-ready", hidden = true)
  private boolean exitWhenReady;

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws IOException, InterruptedException {
    ((Logger) EarlyStart.openLog().getLogger(Logger.ROOT_LOGGER_NAME))
        .setLevel(Level.toLevel(logLevel.name()));
    ManagerConfig config = config();
    try (Manager manager = Manager.start(config)) {
      Runnable stop = () -> manager.stop(config.drainTimeout());
      Signals.onFirst(stop);
      if (stopWithStdin) {
        Thread.ofPlatform().daemon().name("orbitkv-stdin").start(() -> awaitEndOfInput(stop));
      }
      System.out.println(manager.startupSummary());
      if (manager.awaitReady(READY_BOUND)) { // else a stop was asked for meanwhile
        System.out.println(readyLine(manager));
        if (exitWhenReady) {
          stop.run();
        }
      }
      manager.awaitTermination();
    }
    return 0;
  }

  private static String readyLine(Manager manager) {
    return ManagerProcess.READY
        + " socket="
        + manager.socket()
        + " http="
        + hostPort(manager.httpAddress())
        + " pid="
        + ProcessHandle.current().pid();
  }

  private ManagerConfig config() throws IOException {
    long pool = poolSize != null ? poolSize.bytes() : MemoryFacts.read().freeBytes() / 2;
    try {
      return ManagerConfig.builder(socket.path(), pool)
          .poolShards(poolShards)
          .httpAddr(httpAddress())
          .queryBudgetBytes(queryBudget.bytes())
          .instanceBudgetBytes(queryInstanceBudget.bytes())
          .hugePages(useHugepages)
          .allowedUids(allowUid)
          .drainTimeout(Duration.ofSeconds(drainTimeout))
          .build();
    } catch (ManagerException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  private InetSocketAddress httpAddress() {
    int colon = httpAddr.lastIndexOf(':');
    String port = httpAddr.substring(colon + 1);
    if (colon < 1 || !port.matches("\\d{1,5}") || Integer.parseInt(port) > MAX_PORT) {
      throw new ParameterException(
          spec.commandLine(),
          "--http-addr=\"" + httpAddr + "\" must be HOST:PORT with a port from 0 to " + MAX_PORT);
    }
    String host = httpAddr.substring(0, colon).replaceAll("^\\[|\\]$", "");
    return new InetSocketAddress(host, Integer.parseInt(port));
  }

  private static String hostPort(InetSocketAddress address) {
    return address.getAddress().getHostAddress() + ":" + address.getPort();
  }

  private static void awaitEndOfInput(Runnable stop) {
    try (InputStream in = System.in) {
      in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      throw new UncheckedIOException("standard input cannot be read", e);
    } finally {
      stop.run();
    }
  }
}
