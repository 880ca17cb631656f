package io.orbitkv.channel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Finds out, from outside, which bytes of a record its code reads or writes for each field: bytes
 * whose change changes what a reader returns, or bytes that a writer changes.
 */
final class FieldProbe {
  /** Bytes of a field, from the start of the record. */
  record Span(long offset, long bytes) {}

  private final Arena arena;
  private final long regionBytes;
  private final long recordAt;
  private final long recordBytes;
  private Consumer<MemorySegment> start = region -> {};
  private final Map<String, Span> fields = new LinkedHashMap<>();

  FieldProbe(Arena arena, long regionBytes, long recordAt, long recordBytes) {
    this.arena = arena;
    this.regionBytes = regionBytes;
    this.recordAt = recordAt;
    this.recordBytes = recordBytes;
  }

  /** Writes the region before each probe; it is zeroed otherwise. */
  FieldProbe startWith(Consumer<MemorySegment> writer) {
    start = writer;
    return this;
  }

  Map<String, Span> fields() {
    return fields;
  }

  private MemorySegment fresh() {
    MemorySegment region = arena.allocate(regionBytes, 4096);
    start.accept(region);
    return region;
  }

  /** A field is the bytes whose change changes the answer of {@code reader}. */
  FieldProbe reads(String field, Function<MemorySegment, Object> reader) {
    MemorySegment region = fresh();
    Object before = reader.apply(region);
    boolean[] hit = new boolean[(int) recordBytes];
    for (int i = 0; i < recordBytes; i++) {
      byte was = region.get(JAVA_BYTE, recordAt + i);
      region.set(JAVA_BYTE, recordAt + i, (byte) (was ^ 1));
      hit[i] = !Objects.equals(before, reader.apply(region));
      region.set(JAVA_BYTE, recordAt + i, was);
    }
    return put(field, hit);
  }

  /** A field is the bytes that {@code writer} changes. */
  FieldProbe writes(String field, Consumer<MemorySegment> writer) {
    return differs(field, region -> {}, writer);
  }

  /** A field is the bytes in which the results of two writers differ. */
  FieldProbe differs(String field, Consumer<MemorySegment> one, Consumer<MemorySegment> other) {
    MemorySegment first = fresh();
    one.accept(first);
    MemorySegment second = fresh();
    other.accept(second);
    boolean[] hit = new boolean[(int) recordBytes];
    for (int i = 0; i < recordBytes; i++) {
      hit[i] = first.get(JAVA_BYTE, recordAt + i) != second.get(JAVA_BYTE, recordAt + i);
    }
    return put(field, hit);
  }

  private FieldProbe put(String field, boolean[] hit) {
    int from = 0;
    while (from < hit.length && !hit[from]) {
      from++;
    }
    int to = from;
    while (to < hit.length && hit[to]) {
      to++;
    }
    for (int i = to; i < hit.length; i++) {
      if (hit[i]) {
        throw new AssertionError(field + " is not contiguous: bytes " + from + ".." + i);
      }
    }
    fields.put(field, new Span(from, to - from));
    return this;
  }
}
