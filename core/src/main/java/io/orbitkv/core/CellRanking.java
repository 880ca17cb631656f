package io.orbitkv.core;

/** The few cells of {@link AgeCells} whose rows are worth least, in order. */
final class CellRanking {
  /** Most cells that are kept. */
  static final int PLACES = 8;

  private final int[] cells = new int[PLACES];
  private final float[] worth = new float[PLACES];
  private int count;

  void clear() {
    count = 0;
  }

  /** Takes a cell in if it is worth less than the last one, or there is room. */
  void offer(int cell, float itsWorth) {
    if (count == PLACES && itsWorth >= worth[PLACES - 1]) {
      return;
    }
    int i = count < PLACES ? count++ : PLACES - 1;
    for (; i > 0 && itsWorth < worth[i - 1]; i--) {
      cells[i] = cells[i - 1];
      worth[i] = worth[i - 1];
    }
    cells[i] = cell;
    worth[i] = itsWorth;
  }

  int count() {
    return count;
  }

  int cell(int place) {
    return cells[place];
  }

  float worth(int place) {
    return worth[place];
  }

  void setCell(int place, int cell) {
    cells[place] = cell;
  }
}
