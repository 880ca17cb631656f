package io.orbitkv.app;

import java.io.PrintWriter;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Entry of the command line: chooses the subcommand and turns failures into one line each. */
@Command(
    name = "orbitkv",
    description = "Keeps the KV cache of LLM inference engines outside the engine, on the host.",
    footer = "%nEvery flag can also come from the environment: --pool-size is ORBITKV_POOL_SIZE.",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    subcommands = {
      ManagerCommand.class,
      DemoCommand.class,
      ReplayCommand.class,
      BenchCommand.class,
      StatusCommand.class
    },
    scope = CommandLine.ScopeType.INHERIT)
public final class Main implements Runnable {
  /** Exit code of a run that failed. */
  static final int FAILED = 1;

  /** Exit code of a wrong flag or value. */
  static final int WRONG_USE = 2;

  @Spec private CommandSpec spec;

  /** Runs a command and ends the JVM with its exit code. */
  public static void main(String... arguments) {
    EarlyStart.begin(arguments);
    System.exit(commandLine(System.getenv()).execute(arguments));
  }

  /** The command line, with the defaults of an environment. */
  static CommandLine commandLine(Map<String, String> environment) {
    CommandLine line = new CommandLine(new Main());
    line.registerConverter(ByteSize.class, new ByteSize.Converter());
    line.setDefaultValueProvider(new EnvironmentDefaults(environment));
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setParameterExceptionHandler(
        (failure, arguments) -> fail(failure.getCommandLine(), failure, WRONG_USE));
    line.setExecutionExceptionHandler((failure, used, result) -> fail(used, failure, FAILED));
    return line;
  }

  /** Called when no subcommand was given. */
  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(),
        "no command given; allowed: " + String.join(", ", spec.subcommands().keySet()));
  }

  /** Prints the failure on one line. */
  private static int fail(CommandLine line, Exception failure, int code) {
    String message = failure.getMessage();
    if (message == null || message.isBlank()) {
      message = failure.getClass().getSimpleName();
    }
    PrintWriter error = line.getErr();
    error.println("orbitkv: " + message.strip().replaceAll("\\s*\\R\\s*", " "));
    error.flush();
    return code;
  }

  /** Version of the program. */
  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      String version = Main.class.getPackage().getImplementationVersion();
      return new String[] {"orbitkv " + (version == null ? "development" : version)};
    }
  }
}
