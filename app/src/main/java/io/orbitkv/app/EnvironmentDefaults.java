package io.orbitkv.app;

import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.IDefaultValueProvider;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Values of flags that were not given, from the environment: {@code --pool-size} is {@code
 * ORBITKV_POOL_SIZE}.
 */
final class EnvironmentDefaults implements IDefaultValueProvider {
  private static final String PREFIX = "ORBITKV_";

  private final Map<String, String> environment;

  EnvironmentDefaults(Map<String, String> environment) {
    this.environment = environment;
  }

  @Override
  public String defaultValue(ArgSpec argument) {
    if (!(argument instanceof OptionSpec option) || option.usageHelp() || option.versionHelp()) {
      return null;
    }
    String value = environment.get(variable(option));
    return value == null || value.isEmpty() ? null : value;
  }

  /** Name of the variable of a flag. */
  static String variable(OptionSpec option) {
    String name = option.longestName().replaceFirst("^-+", "");
    return PREFIX + name.replace('-', '_').toUpperCase(Locale.ROOT);
  }
}
