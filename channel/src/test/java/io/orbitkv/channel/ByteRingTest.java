package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ByteRingTest {
  private static final int SIZE = ChannelDescriptor.BYTE_RING_BYTES;
  private static final int MAX = Protocol.MAX_SPAN_BYTES;
  private static final int RING = ChannelDescriptor.QUERY_REQUESTS;
  private static final long BASE = ChannelDescriptor.byteRingOffset(RING);

  private final Arena arena = Arena.ofConfined();
  private final MemorySegment region = arena.allocate(ChannelDescriptor.REGION_BYTES, 4096);
  private final MemorySegment copy = arena.allocate(MAX + 64);
  private final ByteRing.Producer producer = new ByteRing.Producer(region, RING);
  private final ByteRing.Consumer consumer = new ByteRing.Consumer(region, RING);

  @AfterEach
  void close() {
    arena.close();
  }

  /** Writes a span whose bytes follow from {@code fill}; null when there is no room. */
  private Command write(int length, int fill) {
    long at = producer.tryClaim(length);
    if (at < 0) {
      return null;
    }
    region.asSlice(at, length).fill((byte) fill);
    Command command = new Command();
    producer.commit(length, command);
    return command;
  }

  private void assertTaken(Command command, int length, int fill) {
    copy.fill((byte) ~fill);
    assertThat(consumer.take(command, copy)).isEqualTo(length);
    MemorySegment wanted = arena.allocate(length + 1L).fill((byte) fill);
    Memory.putByte(wanted, length, (byte) ~fill);
    assertThat(wanted.mismatch(copy.asSlice(0, length + 1L))).isEqualTo(-1);
  }

  @Test
  void shouldStartAgainAtOffsetZeroWhenEmpty() {
    long generation = -1;
    for (int i = 0; i < 100; i++) {
      Command command = write(1000 + i, i);
      assertThat(command.dataOffset).isZero();
      assertThat(command.generation).isGreaterThan(generation);
      generation = command.generation;
      assertTaken(command, 1000 + i, i);
    }
  }

  @Test
  void shouldNeverSplitSpan() {
    Command first = write(3 << 20, 1);
    Command second = write(3 << 20, 2);
    assertThat(write(3 << 20, 3)).as("2 MiB are left").isNull();

    assertTaken(first, 3 << 20, 1);
    Command third = write(3 << 20, 3);

    assertThat(third.dataOffset).as("the rest of the lap is left out").isZero();
    assertThat(third.generation).isEqualTo(SIZE);
    assertTaken(second, 3 << 20, 2);
    assertTaken(third, 3 << 20, 3);
  }

  @Test
  void shouldRefuseWhenFullAndTakeAgainWhenFreed() {
    Deque<Command> waiting = new ArrayDeque<>();
    int length = (64 << 10) - 16;
    for (int i = 0; i < SIZE / (64 << 10); i++) {
      waiting.add(write(length, i));
    }

    assertThat(producer.hasRoom(1)).isFalse();
    assertThat(producer.tryClaim(1)).isEqualTo(-1);
    assertTaken(waiting.remove(), length, 0);
    assertThat(producer.hasRoom(length)).isTrue();
    assertThat(producer.hasRoom(length + 1)).isFalse();
  }

  @Test
  void shouldTakeSpanOfLargestSizeAtAnyEnd() {
    for (int before : new int[] {1, 4096, SIZE / 2 - 16, MAX}) {
      Command first = write(before, 1);
      assertThat(producer.hasRoom(MAX)).as("beside %d bytes", before).isEqualTo(before <= MAX - 80);
      assertTaken(first, before, 1);
      assertTaken(write(MAX, 2), MAX, 2);
    }
  }

  @Test
  void shouldForgetClaimThatIsNotCommitted() {
    long at = producer.tryClaim(1000);

    assertThat(producer.tryClaim(2000)).isEqualTo(at);
    assertThat(write(10, 1).dataOffset).isZero();
  }

  @Test
  void shouldCommitLessThanClaimed() {
    producer.tryClaim(MAX);
    Command command = new Command();
    producer.commit(10, command);

    assertThat(command.dataLength).isEqualTo(10);
    assertThat(write(10, 1).dataOffset).isEqualTo(64);
  }

  @Test
  void shouldKeepRoomWhenSpansAreEmpty() {
    for (int i = 0; i < SIZE / 64 + 1; i++) {
      assertThat(producer.tryClaim(0)).isNotEqualTo(-1);
      Command command = new Command();
      producer.commit(0, command);
      assertThat(consumer.take(command, copy)).isZero();
    }
    assertThat(producer.hasRoom(MAX)).isTrue();
  }

  @Test
  void shouldRefuseToClaimMoreThanLimit() {
    assertThatThrownBy(() -> producer.tryClaim(MAX + 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("limit=" + MAX);
  }

  @Test
  void shouldIgnoreImpossibleHead() {
    write(MAX, 1);
    write(1, 2);
    long headAt = ChannelDescriptor.ringOffset(RING) + 136;

    for (long head : new long[] {-1, Long.MIN_VALUE, SIZE, Long.MAX_VALUE}) {
      Memory.putLongRelease(region, headAt, head);
      assertThat(producer.hasRoom(MAX)).as("head=%d", head).isFalse();
    }
  }

  private void assertRefused(Status status, String text, Consumer<Command> change) {
    Command command = write(100, 7);
    Command changed =
        new Command().data(command.dataOffset, command.dataLength, command.generation);
    change.accept(changed);
    ProtocolException refusal =
        catchThrowableOfType(ProtocolException.class, () -> consumer.take(changed, copy));
    assertThat(refusal).hasMessageContaining(text);
    assertThat(refusal.status()).isEqualTo(status);
    assertTaken(command, 100, 7);
  }

  @Test
  void shouldRefuseForeignOffset() {
    assertRefused(Status.INVALID, "offset=64", c -> c.dataOffset += 64);
    assertRefused(Status.INVALID, "offset=-64", c -> c.dataOffset -= 64);
    assertRefused(Status.INVALID, "offset=1", c -> c.data(1, 100, c.generation + 1));
  }

  @Test
  void shouldRefuseOldOrDistantGeneration() {
    assertTaken(write(100, 1), 100, 1);
    assertTaken(write(100, 1), 100, 1);
    assertRefused(Status.INVALID, "generation=0", c -> c.generation = 0);
    assertRefused(Status.INVALID, "generation=-", c -> c.generation = Long.MIN_VALUE);
    assertRefused(Status.INVALID, "next=", c -> c.generation += 2L * SIZE);
    assertRefused(Status.INVALID, "next=", c -> c.generation = Long.MAX_VALUE - SIZE + 1);
  }

  @Test
  void shouldRefuseSpanTwice() {
    Command command = write(100, 1);
    assertTaken(command, 100, 1);

    assertThatThrownBy(() -> consumer.take(command, copy)).isInstanceOf(ProtocolException.class);
  }

  @Test
  void shouldRefuseLengthAboveLimit() {
    assertRefused(Status.LIMIT, "limit=" + MAX, c -> c.dataLength = MAX + 1);
    assertRefused(Status.LIMIT, "bytes=-1", c -> c.dataLength = -1);
    assertRefused(Status.LIMIT, "limit=", c -> c.dataLength = Integer.MIN_VALUE);
  }

  @Test
  void shouldRefuseSpanBeyondRing() {
    assertRefused(
        Status.INVALID,
        "offset=" + (SIZE - 64),
        c -> c.data(SIZE - 64, 100, c.generation + SIZE - 64));
  }

  @Test
  void shouldRefuseHeaderThatDiffers() {
    assertRefused(Status.INVALID, "span header differs", c -> c.dataLength--);
    assertRefused(
        Status.INVALID,
        "span header differs",
        c -> c.data(c.dataOffset + 64, c.dataLength, c.generation + 64));
    Command command = write(100, 1);
    Memory.putLong(region, BASE + command.dataOffset, command.generation + 1);
    assertThatThrownBy(() -> consumer.take(command, copy))
        .isInstanceOf(ProtocolException.class)
        .hasMessageContaining("span header differs");
  }

  @Test
  void shouldRefuseDataThatDoesNotFitReader() {
    Command command = write(100, 1);

    assertThatThrownBy(() -> consumer.take(command, copy.asSlice(0, 99)))
        .isInstanceOf(ProtocolException.class)
        .hasMessageContaining("bytes=100");
  }

  @Test
  void shouldKeepSpansWholeInRandomInterleaving() {
    Seeds.run(random -> {
      Deque<Span> waiting = new ArrayDeque<>();
      for (int step = 0; step < 20_000; step++) {
        if (random.nextBoolean()) {
          writeRandom(random, step, waiting);
        } else if (!waiting.isEmpty()) {
          takeAndCompare(waiting.remove());
        }
      }
      while (!waiting.isEmpty()) {
        takeAndCompare(waiting.remove());
      }
      assertThat(producer.hasRoom(MAX)).isTrue();
    });
  }

  private void writeRandom(SplittableRandom random, int step, Deque<Span> waiting) {
    int length = random.nextInt(100) == 0 ? 1 + random.nextInt(MAX) : 1 + random.nextInt(200 << 10);
    boolean room = producer.hasRoom(length);
    Command command = write(length, step);
    assertThat(command != null).isEqualTo(room);
    if (command == null) {
      assertThat(waiting).as("an empty ring has room").isNotEmpty();
      return;
    }
    assertThat(command.dataOffset + 16 + length).isLessThanOrEqualTo(SIZE);
    if (waiting.isEmpty()) {
      assertThat(command.dataOffset).isZero();
    } else {
      assertThat(command.generation).isGreaterThan(waiting.peekLast().command().generation);
    }
    waiting.add(new Span(command, (byte) step));
  }

  private void takeAndCompare(Span span) {
    int length = span.command().dataLength;
    assertThat(consumer.take(span.command(), copy)).isEqualTo(length);
    long whole = Math.min(length, 64);
    for (long i = 0; i < whole; i++) {
      assertThat(Memory.getByte(copy, i)).isEqualTo(span.fill());
      assertThat(Memory.getByte(copy, length - 1 - i)).isEqualTo(span.fill());
    }
    assertThat(copy.asSlice(0, length - 1L).mismatch(copy.asSlice(1, length - 1L)))
        .as("all bytes are equal")
        .isEqualTo(-1);
  }

  private record Span(Command command, byte fill) {}
}
