package io.orbitkv.client;

import io.orbitkv.channel.GroupKind;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Pages of one group in the engine's memory. Page p of layer l is the segments of that layer, each
 * {@code base + offset + p * pageStride + segment.offset} for {@code segment.length} bytes; the
 * block is these bytes one behind the other, layer after layer.
 *
 * @param id group id, 0 to 63
 * @param kind what the group keeps
 * @param windowTokens window in tokens of a window group, else 0
 * @param pages pages of each layer
 * @param layers at least one, in the order of the model
 */
public record GroupSpec(int id, GroupKind kind, int windowTokens, int pages, List<Layer> layers) {
  /**
   * Memory of one layer.
   *
   * @param memory native memory that holds all pages
   * @param offset bytes from the start of the memory to page 0
   * @param pageStride bytes from page to page
   * @param segments parts of a page, for example keys and values
   */
  public record Layer(MemorySegment memory, long offset, long pageStride, List<Segment> segments) {
    /** Copies the list. */
    public Layer {
      segments = List.copyOf(segments);
    }
  }

  /**
   * Part of a page.
   *
   * @param offset bytes from the start of the page
   * @param length bytes
   */
  public record Segment(long offset, long length) {}

  /** Copies the list. */
  public GroupSpec {
    layers = List.copyOf(layers);
  }

  /** Group 0 with one layer whose pages lie one behind the other. */
  public static GroupSpec contiguous(MemorySegment memory, long pageBytes, int pages) {
    return new GroupSpec(
        0,
        GroupKind.PREFIX,
        0,
        pages,
        List.of(new Layer(memory, 0, pageBytes, List.of(new Segment(0, pageBytes)))));
  }

  /** Bytes of a block. */
  public long blockBytes() {
    long sum = 0;
    for (Layer layer : layers) {
      for (Segment segment : layer.segments()) {
        sum = Math.addExact(sum, segment.length());
      }
    }
    return sum;
  }
}
