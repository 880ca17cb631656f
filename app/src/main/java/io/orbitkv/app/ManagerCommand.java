package io.orbitkv.app;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.orbitkv.bench.ManagerProcess;
import io.orbitkv.manager.Manager;
import io.orbitkv.manager.ManagerConfig;
import io.orbitkv.manager.ManagerException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** Runs a Manager in the foreground until it is asked to end. */
final class ManagerCommand implements Callable<Integer> {
  static final String NAME = "manager";

  private static final Duration READY_BOUND = Duration.ofMinutes(10);

  private final ManagerFlags flags = new ManagerFlags();
  private final CommandSpec spec = CommandSpec.wrapWithoutInspection(this);

  private ManagerCommand() {}

  /** The command and its flags. */
  static CommandSpec spec() {
    ManagerCommand command = new ManagerCommand();
    command.spec.name(NAME);
    command
        .spec
        .usageMessage()
        .description(
            "Runs a Cache Manager in the foreground; SIGTERM and SIGINT drain and end it.");
    command.flags.all().forEach(command.spec::addOption);
    return command.spec;
  }

  @Override
  public Integer call() throws IOException, InterruptedException {
    ((Logger) EarlyStart.openLog().getLogger(Logger.ROOT_LOGGER_NAME))
        .setLevel(Level.toLevel(flags.logLevel().name()));
    ManagerConfig config = config();
    try (Manager manager = Manager.start(config)) {
      Runnable stop = () -> manager.stop(config.drainTimeout());
      Signals.onFirst(stop);
      if (flags.stopWithStdin()) {
        Thread.ofPlatform().daemon().name("orbitkv-stdin").start(() -> awaitEndOfInput(stop));
      }
      System.out.println(manager.startupSummary());
      if (manager.awaitReady(READY_BOUND)) { // else a stop was asked for meanwhile
        System.out.println(readyLine(manager));
        if (flags.exitWhenReady()) {
          stop.run();
        }
      }
      manager.awaitTermination();
    }
    return 0;
  }

  private ManagerConfig config() throws IOException {
    try {
      return flags.config();
    } catch (IllegalArgumentException | ManagerException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
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
