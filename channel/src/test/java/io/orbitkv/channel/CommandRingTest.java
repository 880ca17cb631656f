package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CommandRingTest {
  private static final int CAPACITY = ChannelDescriptor.RING_CAPACITY;
  private static final int RING = ChannelDescriptor.PUBLISH_REQUESTS;
  private static final long HEAD_AT = ChannelDescriptor.ringOffset(RING) + 128;
  private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(60);

  private final Arena arena = Arena.ofShared();
  private final MemorySegment region = arena.allocate(ChannelDescriptor.REGION_BYTES, 4096);
  private final CommandRing.Producer producer = new CommandRing.Producer(region, RING);
  private final CommandRing.Consumer consumer = new CommandRing.Consumer(region, RING);
  private final Command command = new Command();

  @AfterEach
  void close() {
    arena.close();
  }

  private boolean write(long id) {
    return producer.tryWrite(command.set(Opcode.PING, 0, id, ~id, id + 1, id + 2));
  }

  private void assertRead(long id) {
    assertThat(consumer.tryRead(command)).isTrue();
    boolean whole =
        command.opcode == Opcode.PING
            && command.requestId == id
            && command.epoch == ~id
            && command.scalar0 == id + 1
            && command.scalar1 == id + 2;
    assertThat(whole).as("command %d: read requestId=%d", id, command.requestId).isTrue();
  }

  @Test
  void shouldBeEmptyWhenFresh() {
    assertThat(consumer.hasNext()).isFalse();
    assertThat(consumer.tryRead(command)).isFalse();
    assertThat(producer.hasRoom()).isTrue();
  }

  @Test
  void shouldRefuseWhenFull() {
    for (int i = 0; i < CAPACITY; i++) {
      assertThat(write(i)).isTrue();
    }

    assertThat(producer.hasRoom()).isFalse();
    assertThat(write(-1)).isFalse();
    assertRead(0);
    assertThat(write(CAPACITY)).isTrue();
    assertThat(write(-1)).isFalse();
    for (int i = 1; i <= CAPACITY; i++) {
      assertRead(i);
    }
    assertThat(consumer.hasNext()).isFalse();
  }

  @Test
  void shouldKeepOrderOverManyLaps() {
    Seeds.run(random -> {
      long written = 0;
      long read = 0;
      while (read < 20L * CAPACITY) {
        for (int n = random.nextInt(CAPACITY + 1); n > 0 && producer.hasRoom(); n--) {
          assertThat(write(written++)).isTrue();
        }
        for (int n = random.nextInt(CAPACITY + 1); n > 0 && consumer.hasNext(); n--) {
          assertRead(read++);
        }
      }
    });
  }

  @Test
  void shouldKeepRingsApart() {
    for (int ring = 0; ring < ChannelDescriptor.RINGS; ring++) {
      var other = new CommandRing.Producer(region, ring);
      for (int i = 0; i < CAPACITY; i++) {
        assertThat(other.tryWrite(command.set(Opcode.PING, ring, i, 0, 0, 0))).isTrue();
      }
    }

    for (int ring = 0; ring < ChannelDescriptor.RINGS; ring++) {
      var other = new CommandRing.Consumer(region, ring);
      for (int i = 0; i < CAPACITY; i++) {
        assertThat(other.tryRead(command)).isTrue();
        assertThat(command.status).isEqualTo(ring);
        assertThat(command.requestId).isEqualTo(i);
      }
      assertThat(other.hasNext()).isFalse();
    }
  }

  @Test
  void shouldIgnoreImpossibleHead() {
    for (int i = 0; i < CAPACITY; i++) {
      write(i);
    }

    for (long head : new long[] {CAPACITY + 1, Long.MAX_VALUE, -1, Long.MIN_VALUE}) {
      Memory.putLongRelease(region, HEAD_AT, head);
      assertThat(producer.hasRoom()).as("head=%d", head).isFalse();
    }
  }

  @Test
  void shouldNotReadSlotOfAnotherLap() {
    write(0);
    long sequenceAt =
        ChannelDescriptor.ringOffset(RING) + 2L * ChannelDescriptor.LINE_BYTES + Command.BYTES - 8;

    for (long sequence : new long[] {0, 2, CAPACITY + 1, -1}) {
      Memory.putLongRelease(region, sequenceAt, sequence);
      assertThat(consumer.tryRead(command)).as("sequence=%d", sequence).isFalse();
    }
  }

  @Test
  void shouldCarryMillionCommandsBetweenThreads()
      throws InterruptedException, ExecutionException, java.util.concurrent.TimeoutException {
    long count = 1_000_000;
    long deadline = System.nanoTime() + TIMEOUT_NS;
    CountDownLatch ready = new CountDownLatch(2);
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Future<Long> writer = threads.submit(() -> writeAll(count, ready, deadline));
      Future<Long> reader = threads.submit(() -> readAll(count, ready, deadline));

      assertThat(writer.get(90, TimeUnit.SECONDS)).isEqualTo(count);
      assertThat(reader.get(90, TimeUnit.SECONDS)).isEqualTo(count);
    }
  }

  private long writeAll(long count, CountDownLatch ready, long deadline)
      throws InterruptedException {
    Command next = new Command();
    ready.countDown();
    ready.await(60, TimeUnit.SECONDS);
    for (long i = 0; i < count; i++) {
      next.set(Opcode.PING, (int) i, i, ~i, i * 31, -i);
      while (!producer.tryWrite(next)) {
        giveWay(deadline);
      }
    }
    return count;
  }

  private long readAll(long count, CountDownLatch ready, long deadline)
      throws InterruptedException {
    Command next = new Command();
    ready.countDown();
    ready.await(60, TimeUnit.SECONDS);
    for (long i = 0; i < count; i++) {
      while (!consumer.tryRead(next)) {
        giveWay(deadline);
      }
      boolean whole =
          next.status == (int) i
              && next.requestId == i
              && next.epoch == ~i
              && next.scalar0 == i * 31
              && next.scalar1 == -i;
      assertThat(whole).as("command %d: read requestId=%d", i, next.requestId).isTrue();
    }
    return count;
  }

  @SuppressWarnings("ThreadPriorityCheck") // both threads may share one core
  private static void giveWay(long deadline) {
    Thread.yield();
    assertThat(System.nanoTime()).as("deadline").isLessThan(deadline);
  }
}
