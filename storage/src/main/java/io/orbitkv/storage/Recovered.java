package io.orbitkv.storage;

/**
 * What the files held at the start.
 *
 * @param blocks blocks that are served again
 * @param segments segments they are in
 * @param damagedSegments segments whose table is torn or damaged
 * @param foreignSegments segments whose table is of another file
 * @param exchangedSegments segments whose table is of another segment
 * @param clearedBlocks blocks whose namespace was cleared later
 * @param unusableBlocks blocks that this Manager can not hold: larger than a slab, or no row left
 * @param newFiles files that were made or reset
 */
public record Recovered(
    long blocks,
    long segments,
    long damagedSegments,
    long foreignSegments,
    long exchangedSegments,
    long clearedBlocks,
    long unusableBlocks,
    int newFiles) {
  /** Nothing. */
  static final Recovered NONE = new Recovered(0, 0, 0, 0, 0, 0, 0, 0);

  /** The sum of both. */
  Recovered plus(Recovered other) {
    return new Recovered(
        blocks + other.blocks,
        segments + other.segments,
        damagedSegments + other.damagedSegments,
        foreignSegments + other.foreignSegments,
        exchangedSegments + other.exchangedSegments,
        clearedBlocks + other.clearedBlocks,
        unusableBlocks + other.unusableBlocks,
        newFiles + other.newFiles);
  }

  /** One line for a person. */
  public String summary() {
    return blocks
        + " blocks found in "
        + segments
        + " segments; discarded: segments damaged="
        + damagedSegments
        + ", foreign="
        + foreignSegments
        + ", exchanged="
        + exchangedSegments
        + ", blocks cleared="
        + clearedBlocks
        + ", unusable="
        + unusableBlocks
        + (newFiles > 0 ? "; new files=" + newFiles : "");
  }
}
