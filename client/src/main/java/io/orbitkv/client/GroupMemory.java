package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Pages of one group, flattened for the copy loops: a block is its pieces one behind the other, in
 * the order of layers; neighbouring segments of a layer are one piece. Immutable.
 *
 * <p>Piece i of page p: {@code length[i]} bytes at {@code base[i] + p * stride[i]} of {@code
 * memory[i]}; in the block, at {@code blockOffset[i]}.
 */
final class GroupMemory {
  final int id;
  final int pages;
  final int layers;
  final long blockBytes;

  /** Index of a layer's first piece; one more entry than layers. */
  final int[] firstPiece;

  final MemorySegment[] memory;
  final long[] base;
  final long[] stride;
  final long[] length;
  final long[] blockOffset;

  private GroupMemory(GroupSpec spec, List<Piece> pieces, int[] firstPiece) {
    this.id = spec.id();
    this.pages = spec.pages();
    this.layers = spec.layers().size();
    this.blockBytes = spec.blockBytes();
    this.firstPiece = firstPiece;
    this.memory = pieces.stream().map(Piece::memory).toArray(MemorySegment[]::new);
    this.base = pieces.stream().mapToLong(Piece::base).toArray();
    this.stride = pieces.stream().mapToLong(Piece::stride).toArray();
    this.length = pieces.stream().mapToLong(Piece::length).toArray();
    this.blockOffset = pieces.stream().mapToLong(Piece::blockOffset).toArray();
  }

  private record Piece(
      MemorySegment memory, long base, long stride, long length, long blockOffset) {
    boolean isFollowedBy(Piece next) {
      return base + length == next.base;
    }

    Piece with(Piece next) {
      return new Piece(memory, base, stride, length + next.length, blockOffset);
    }
  }

  /**
   * Checks and flattens a group.
   *
   * @param writable whether the engine restores into it
   * @throws OrbitKvException with {@link Status#INVALID} naming group, value and rule
   */
  static GroupMemory of(GroupSpec spec, boolean writable) {
    require(spec, spec.pages() > 0, "pages=" + spec.pages() + ", at least 1");
    require(spec, !spec.layers().isEmpty(), "layers=0, at least 1");
    List<Piece> pieces = new ArrayList<>();
    int[] firstPiece = new int[spec.layers().size() + 1];
    long blockOffset = 0;
    for (int layer = 0; layer < spec.layers().size(); layer++) {
      firstPiece[layer] = pieces.size();
      blockOffset = addLayer(spec, layer, writable, pieces, blockOffset);
    }
    firstPiece[spec.layers().size()] = pieces.size();
    require(spec, blockOffset <= Integer.MAX_VALUE, "blockBytes=" + blockOffset + ", below 2 GiB");
    return new GroupMemory(spec, pieces, firstPiece);
  }

  private static long addLayer(
      GroupSpec spec, int index, boolean writable, List<Piece> pieces, long blockOffset) {
    GroupSpec.Layer layer = spec.layers().get(index);
    MemorySegment memory = layer.memory();
    String at = "layer=" + index + ": ";
    require(spec, memory.isNative(), at + "memory is not native");
    require(spec, !writable || !memory.isReadOnly(), at + "memory is read-only");
    require(spec, !layer.segments().isEmpty(), at + "segments=0, at least 1");
    int first = pieces.size();
    for (GroupSpec.Segment segment : layer.segments()) {
      Piece piece = piece(spec, layer, segment, at, blockOffset);
      if (pieces.size() > first && pieces.getLast().isFollowedBy(piece)) {
        pieces.add(pieces.removeLast().with(piece));
      } else {
        pieces.add(piece);
      }
      blockOffset += segment.length();
    }
    return blockOffset;
  }

  private static Piece piece(
      GroupSpec spec, GroupSpec.Layer layer, GroupSpec.Segment segment, String at, long offset) {
    require(spec, segment.length() > 0, at + "segment bytes=" + segment.length() + ", at least 1");
    require(
        spec,
        layer.offset() >= 0 && layer.pageStride() > 0 && segment.offset() >= 0,
        at
            + "offset="
            + layer.offset()
            + ", pageStride="
            + layer.pageStride()
            + ", segment offset="
            + segment.offset()
            + ", none may be negative");
    long last =
        Math.multiplyHigh(spec.pages() - 1L, layer.pageStride()) == 0
            ? (spec.pages() - 1L) * layer.pageStride()
            : -1;
    long size = layer.memory().byteSize();
    boolean fits =
        last >= 0
            && last <= size
            && layer.offset() <= size
            && segment.offset() <= size
            && segment.length() <= size
            && last + layer.offset() <= size - segment.length()
            && last + layer.offset() + segment.offset() <= size - segment.length();
    require(spec, fits, at + "memory bytes=" + size + " end before page=" + (spec.pages() - 1));
    return new Piece(
        layer.memory(),
        layer.offset() + segment.offset(),
        layer.pageStride(),
        segment.length(),
        offset);
  }

  private static void require(GroupSpec spec, boolean condition, String what) {
    if (!condition) {
      throw new OrbitKvException(Status.INVALID, "group=" + spec.id() + ": " + what);
    }
  }

  /** Native address of page 0 of the first layer, which names this memory in the process. */
  long address() {
    return memory[0].address() + base[0];
  }

  /** Checks page numbers. */
  void requirePages(int[] wanted) {
    for (int page : wanted) {
      if (page < 0 || page >= pages) {
        throw new OrbitKvException(
            Status.INVALID, "group=" + id + ": page=" + page + ", allowed=0.." + (pages - 1));
      }
    }
  }
}
