package io.orbitkv.app;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/** Entry of the command line: chooses the subcommand and turns failures into one line each. */
public final class Main implements Runnable {
  /** Exit code of a run that failed. */
  static final int FAILED = 1;

  /** Exit code of a wrong flag or value. */
  static final int WRONG_USE = 2;

  private final CommandSpec spec = CommandSpec.wrapWithoutInspection(this);

  private Main() {}

  /** Runs a command and ends the JVM with its exit code. */
  public static void main(String... arguments) {
    EarlyStart.begin(arguments);
    System.exit(commandLine(System.getenv(), arguments).execute(arguments));
  }

  /**
   * The command line for some arguments, with the defaults of an environment. Subcommands that the
   * arguments can not mean may be left out: to read their annotations takes longer than all that a
   * Manager does before its pool is touched.
   */
  static CommandLine commandLine(Map<String, String> environment, String... arguments) {
    CommandSpec root = new Main().spec;
    describe(root);
    CommandLine line = new CommandLine(root);
    line.addSubcommand(new CommandLine(withStandardOptions(ManagerCommand.spec())));
    if (arguments.length == 0 || !arguments[0].equals(ManagerCommand.NAME)) {
      for (Object command :
          List.of(
              new DemoCommand(),
              new ReplayCommand(),
              new PlanCommand(),
              new SimulateCommand(),
              new BenchCommand(),
              new StatusCommand(),
              new ClearCommand(),
              new ExplainCommand(),
              new PackageCommand())) {
        CommandSpec annotated = CommandSpec.forAnnotatedObject(command);
        line.addSubcommand(new CommandLine(withStandardOptions(annotated)));
      }
    }
    line.registerConverter(ByteSize.class, new ByteSize.Converter());
    line.registerConverter(JsonFile.class, new JsonFile.Converter());
    line.registerConverter(Path.class, new PathConverter());
    line.setDefaultValueProvider(new EnvironmentDefaults(environment));
    line.setInterpolateVariables(false); // a value of the environment is what it is
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setParameterExceptionHandler(
        (failure, _) -> fail(failure.getCommandLine(), failure, WRONG_USE));
    line.setExecutionExceptionHandler((failure, used, _) -> fail(used, failure, FAILED));
    return line;
  }

  private static void describe(CommandSpec root) {
    root.name("orbitkv");
    root.usageMessage()
        .description("Keeps the KV cache of LLM inference engines outside the engine, on the host.")
        .footer(
            "%nEvery flag can also come from the environment: --pool-size is ORBITKV_POOL_SIZE.");
    withStandardOptions(root);
  }

  /** Adds help and version, as picocli's own mixin would by annotations. */
  private static CommandSpec withStandardOptions(CommandSpec command) {
    command.addOption(
        OptionSpec.builder("-h", "--help")
            .usageHelp(true)
            .description("Show this help message and exit.")
            .build());
    command.addOption(
        OptionSpec.builder("-V", "--version")
            .versionHelp(true)
            .description("Print version information and exit.")
            .build());
    return command.version(version());
  }

  private static String version() {
    String version = Main.class.getPackage().getImplementationVersion();
    return "orbitkv " + (version == null ? "development" : version);
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
}
