package io.orbitkv.bench.replay;

import java.io.PrintStream;
import java.util.Locale;

/** A line on a terminal that is drawn over and over, at most ten times a second. */
final class ProgressBar {
  private static final int WIDTH = 30;
  private static final long INTERVAL_NS = 100_000_000;

  private final PrintStream terminal;
  private final int total;
  private final long startNs = System.nanoTime();
  private long drawnNs = startNs - INTERVAL_NS;

  /** A bar; one that draws nothing when {@code terminal} is null. */
  ProgressBar(PrintStream terminal, int total) {
    this.terminal = terminal;
    this.total = total;
  }

  void update(int done, long lookupBlocks, long hitBlocks) {
    long now = System.nanoTime();
    if (terminal == null || (now - drawnNs < INTERVAL_NS && done < total)) {
      return;
    }
    drawnNs = now;
    int filled = total == 0 ? WIDTH : (int) ((long) WIDTH * done / total);
    terminal.printf(
        Locale.ROOT,
        "\r[%s%s] %,d / %,d requests, hit %.1f %%, %.0f s ",
        "#".repeat(filled),
        ".".repeat(WIDTH - filled),
        done,
        total,
        lookupBlocks == 0 ? 0.0 : 100.0 * hitBlocks / lookupBlocks,
        (now - startNs) / 1e9);
    terminal.flush();
  }

  /** Leaves the line. */
  void end() {
    if (terminal != null) {
      terminal.println();
    }
  }
}
