package io.orbitkv.app;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine;

/**
 * A number of bytes as people write it: plain, or with {@code kb}, {@code mb}, {@code gb} or {@code
 * tb}, each 1024 times the one before.
 *
 * @param bytes at least 0
 */
record ByteSize(long bytes) {
  private static final Pattern FORM = Pattern.compile("(\\d+(?:\\.\\d+)?) *([kmgt]?)b?");
  private static final String UNITS = "kmgt";
  private static final double STEP = 1024;

  /**
   * Parses a size.
   *
   * @throws IllegalArgumentException naming the value and the rule
   */
  static ByteSize parse(String text) {
    Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
    if (!form.matches()) {
      throw invalid(text);
    }
    String unit = form.group(2);
    if (unit.isEmpty() && form.group(1).contains(".")) {
      throw invalid(text);
    }
    int power = unit.isEmpty() ? 0 : UNITS.indexOf(unit) + 1;
    if (power == 0) {
      return plain(text, form.group(1));
    }
    double bytes = Double.parseDouble(form.group(1)) * Math.pow(STEP, power);
    if (bytes > Long.MAX_VALUE / 2.0) {
      throw invalid(text);
    }
    return new ByteSize((long) bytes);
  }

  private static ByteSize plain(String text, String digits) {
    try {
      return new ByteSize(Long.parseLong(digits));
    } catch (NumberFormatException e) {
      throw (IllegalArgumentException) invalid(text).initCause(e);
    }
  }

  private static IllegalArgumentException invalid(String text) {
    return new IllegalArgumentException(
        "\"" + text + "\" is no size; write bytes, or a number with kb, mb, gb or tb");
  }

  /** The size in the unit that people would choose. */
  static String format(long bytes) {
    double value = bytes;
    int power = 0;
    while (value >= STEP && power < UNITS.length()) {
      value /= STEP;
      power++;
    }
    return power == 0
        ? bytes + " B"
        : String.format(
            Locale.ROOT,
            "%.1f %sB",
            value,
            UNITS.substring(power - 1, power).toUpperCase(Locale.ROOT));
  }

  /** For picocli. */
  static final class Converter implements CommandLine.ITypeConverter<ByteSize> {
    @Override
    public ByteSize convert(String value) {
      try {
        return parse(value);
      } catch (IllegalArgumentException e) {
        throw new CommandLine.TypeConversionException(e.getMessage());
      }
    }
  }
}
