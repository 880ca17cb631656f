package io.orbitkv.bench.planner;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Draws the curves of a plan: as lines of text, or as SVG. Sizes are on a logarithmic axis. */
public final class PlanPicture {
  private static final String MARKS = "OLSWAB";
  private static final String[] COLOURS = {
    "#c2255c", "#868e96", "#1971c2", "#e8590c", "#2f9e44", "#212529"
  };
  private static final int ROWS = 16;
  private static final int COLUMNS = 64;
  private static final int WIDTH = 720;
  private static final int HEIGHT = 440;
  private static final int LEFT = 60;
  private static final int TOP = 40;
  private static final int PLOT_WIDTH = 500;
  private static final int PLOT_HEIGHT = 340;
  private static final int LEGEND_STEP = 22;

  private final Plan plan;
  private final double smallest;
  private final double highest;

  /** Prepares to draw; the sizes of the plan are in rising order. */
  public PlanPicture(Plan plan) {
    this.plan = plan;
    this.smallest = plan.curves().get(Plan.OURS).getFirst().fraction();
    this.highest =
        Math.max(
            0.01,
            plan.curves().values().stream()
                .flatMap(List::stream)
                .mapToDouble(Plan.Point::prefixHitRatio)
                .max()
                .orElse(1));
  }

  /** Place of a size from 0, the smallest, to 1, all blocks. */
  private double x(double fraction) {
    return smallest >= 1 ? 1 : 1 - Math.log(fraction) / Math.log(smallest);
  }

  /** Miss ratios over sizes; a point of ours hides the others. */
  public String toText() {
    char[][] grid = new char[ROWS][COLUMNS];
    for (char[] row : grid) {
      Arrays.fill(row, ' ');
    }
    List<Map.Entry<String, List<Plan.Point>>> curves = List.copyOf(plan.curves().entrySet());
    for (int curve = curves.size() - 1; curve >= 0; curve--) {
      for (Plan.Point point : curves.get(curve).getValue()) {
        int row = (int) Math.round((ROWS - 1) * point.prefixHitRatio() / highest);
        int column = (int) Math.round((COLUMNS - 1) * x(point.fraction()));
        grid[row][column] = MARKS.charAt(curve % MARKS.length());
      }
    }
    StringBuilder text = new StringBuilder("miss ratio\n");
    for (int row = 0; row < ROWS; row++) {
      double miss = 1 - highest * row / (ROWS - 1);
      text.append(String.format(Locale.ROOT, "%6.3f |%s%n", miss, new String(grid[row])));
    }
    text.append("       +").append("-".repeat(COLUMNS)).append('\n');
    text.append(
        String.format(Locale.ROOT, "        %-58s%s%n", percent(smallest), "100% of the blocks"));
    for (int curve = 0; curve < curves.size(); curve++) {
      text.append(curve == 0 ? "        " : ", ");
      text.append(MARKS.charAt(curve % MARKS.length())).append(' ');
      text.append(curves.get(curve).getKey());
    }
    return text.append('\n').toString();
  }

  private static String percent(double fraction) {
    return String.format(Locale.ROOT, "%.4g%%", 100 * fraction).replaceFirst("\\.?0+%", "%");
  }

  /** A picture of its own, without scripts or fonts. */
  public String toSvg() {
    StringBuilder svg = new StringBuilder();
    svg.append(
        String.format(
            Locale.ROOT,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-size=\"12\""
                + " font-family=\"sans-serif\">%n<rect width=\"100%%\" height=\"100%%\""
                + " fill=\"white\"/>%n<text x=\"%d\" y=\"22\">Miss ratio by cache size: %s</text>%n",
            WIDTH,
            HEIGHT,
            LEFT,
            escape(plan.trace())));
    appendAxes(svg);
    int curve = 0;
    for (Map.Entry<String, List<Plan.Point>> each : plan.curves().entrySet()) {
      appendCurve(svg, curve++, each.getKey(), each.getValue());
    }
    return svg.append("</svg>\n").toString();
  }

  private void appendAxes(StringBuilder svg) {
    for (int i = 0; i <= 4; i++) {
      double hit = highest * i / 4;
      double y = y(hit);
      svg.append(
          String.format(
              Locale.ROOT,
              "<path d=\"M%d %.1fh%d\" stroke=\"#dee2e6\"/><text x=\"%d\" y=\"%.1f\""
                  + " text-anchor=\"end\">%.2f</text>%n",
              LEFT,
              y,
              PLOT_WIDTH,
              LEFT - 6,
              y + 4,
              1 - hit));
    }
    for (Plan.Point point : plan.curves().get(Plan.OURS)) {
      svg.append(
          String.format(
              Locale.ROOT,
              "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>%n",
              LEFT + PLOT_WIDTH * x(point.fraction()),
              TOP + PLOT_HEIGHT + 20,
              percent(point.fraction())));
    }
    svg.append(
        String.format(
            Locale.ROOT,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">cache size, share of the %,d distinct"
                + " blocks</text>%n",
            LEFT + PLOT_WIDTH / 2,
            TOP + PLOT_HEIGHT + 42,
            plan.blocks()));
  }

  private double y(double hit) {
    return TOP + PLOT_HEIGHT * hit / highest;
  }

  private void appendCurve(StringBuilder svg, int curve, String name, List<Plan.Point> points) {
    String colour = COLOURS[curve % COLOURS.length];
    StringBuilder path = new StringBuilder();
    for (Plan.Point point : points) {
      path.append(path.isEmpty() ? 'M' : 'L');
      path.append(
          String.format(
              Locale.ROOT,
              "%.1f %.1f",
              LEFT + PLOT_WIDTH * x(point.fraction()),
              y(point.prefixHitRatio())));
    }
    int legend = TOP + 10 + LEGEND_STEP * curve;
    svg.append(
        String.format(
            Locale.ROOT,
            "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"/>%n"
                + "<path d=\"M%d %dh24\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"%d\""
                + " y=\"%d\">%s</text>%n",
            path,
            colour,
            name.equals(Plan.OURS) ? "2.5" : "1.5",
            LEFT + PLOT_WIDTH + 20,
            legend,
            colour,
            LEFT + PLOT_WIDTH + 50,
            legend + 4,
            escape(name)));
  }

  private static String escape(String value) {
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
