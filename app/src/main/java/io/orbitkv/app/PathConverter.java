package io.orbitkv.app;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import picocli.CommandLine;

/** Paths for picocli, with an error of our own words. */
final class PathConverter implements CommandLine.ITypeConverter<Path> {
  @Override
  public Path convert(String value) {
    if (value.isEmpty()) {
      throw new CommandLine.TypeConversionException("an empty text is no path");
    }
    try {
      return Path.of(value);
    } catch (InvalidPathException e) {
      throw new CommandLine.TypeConversionException(
          "\"" + value + "\" can not be a path: " + e.getReason());
    }
  }
}
