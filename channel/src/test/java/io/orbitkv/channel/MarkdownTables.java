package io.orbitkv.channel;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Tables of a page, by the heading that they stand under; a row is a map of column to cell. */
final class MarkdownTables {
  private final Map<String, List<Map<String, String>>> tables = new HashMap<>();

  private MarkdownTables() {}

  static MarkdownTables read(Path page) {
    MarkdownTables read = new MarkdownTables();
    try {
      read.parse(Files.readAllLines(page));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return read;
  }

  private void parse(List<String> lines) {
    String heading = "";
    List<String> columns = List.of();
    for (String line : lines) {
      if (line.startsWith("#")) {
        heading = line.replaceFirst("#+ ", "");
        columns = List.of();
      } else if (line.startsWith("|") && columns.isEmpty()) {
        columns = cells(line);
        tables.put(heading, new ArrayList<>());
      } else if (line.startsWith("|") && !line.startsWith("| ---")) {
        tables.get(heading).add(row(columns, cells(line)));
      }
    }
  }

  private static Map<String, String> row(List<String> columns, List<String> cells) {
    Map<String, String> row = new HashMap<>();
    for (int i = 0; i < columns.size(); i++) {
      row.put(columns.get(i), cells.get(i));
    }
    return row;
  }

  private static List<String> cells(String line) {
    return Arrays.stream(line.substring(1).split("\\|", -1)).map(String::strip).toList();
  }

  /** Headings that have a table. */
  Iterable<String> headings() {
    return tables.keySet();
  }

  /** Rows under a heading. */
  List<Map<String, String>> table(String heading) {
    List<Map<String, String>> rows = tables.get(heading);
    if (rows == null) {
      throw new AssertionError("no table under \"" + heading + "\"");
    }
    return rows;
  }
}
