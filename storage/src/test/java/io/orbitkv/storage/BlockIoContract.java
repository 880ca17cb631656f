package io.orbitkv.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.orbitkv.core.SsdPort;
import io.orbitkv.linux.DirectFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What every backend does. */
abstract class BlockIoContract {
  private static final int BLOCK = 256 << 10;
  private static final int COUNT = 64;

  @TempDir private Path directory;
  private final BlockingQueue<IoRequest> done = new LinkedBlockingQueue<>();
  private final Arena arena = Arena.ofShared();
  private final MemorySegment pool = arena.allocate((long) BLOCK * COUNT + 4096, 4096);
  private DirectFile direct;
  private BlockFile file;
  private BlockIo io;

  abstract BlockIo create(Consumer<IoRequest> done);

  @BeforeEach
  void open() {
    direct = DirectFile.open(directory.resolve("data"), 0600);
    direct.allocate((long) BLOCK * COUNT + 4096);
    file = BlockFile.of(direct);
    io = create(done::add);
  }

  @AfterEach
  void close() {
    io.close();
    direct.close();
    arena.close();
  }

  private MemorySegment block(int index) {
    return pool.asSlice((long) index * BLOCK, BLOCK);
  }

  private static void fill(MemorySegment block, int seed) {
    for (long i = 0; i + Long.BYTES <= block.byteSize(); i += Long.BYTES) {
      Bytes.putLong(block, i, (seed * 0x9e37_79b9L + i) * 0x2545_f491L);
    }
  }

  private IoRequest request(
      IoRequest.Kind kind, int number, long offset, MemorySegment block, int crc) {
    IoRequest request = new IoRequest();
    request.number = number;
    request.block(kind, file, offset, block, crc);
    return request;
  }

  private List<IoRequest> run(List<IoRequest> requests) {
    int next = 0;
    List<IoRequest> finished = new ArrayList<>();
    while (finished.size() < requests.size()) {
      while (next < requests.size() && io.submit(requests.get(next))) {
        next++;
      }
      finished.add(take());
    }
    return finished;
  }

  private IoRequest take() {
    try {
      IoRequest request = done.poll(20, TimeUnit.SECONDS);
      assertThat(request).as("a request is not answered").isNotNull();
      return request;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void shouldReadBackManyBlocksWrittenAtOnce() {
    List<IoRequest> writes = new ArrayList<>();
    int[] crcs = new int[COUNT];
    for (int i = 0; i < COUNT; i++) {
      fill(block(i), i);
      crcs[i] = Bytes.crc(block(i), 0, BLOCK);
      writes.add(request(IoRequest.Kind.WRITE_BLOCK, i, (long) i * BLOCK, block(i), crcs[i]));
    }
    assertThat(run(writes)).extracting(r -> r.result).containsOnly(SsdPort.OK);

    pool.fill((byte) 0);
    List<IoRequest> reads = new ArrayList<>();
    for (int i = 0; i < COUNT; i++) {
      reads.add(request(IoRequest.Kind.READ_BLOCK, i, (long) i * BLOCK, block(i), crcs[i]));
    }
    assertThat(run(reads)).extracting(r -> r.result).containsOnly(SsdPort.OK);
    for (int i = 0; i < COUNT; i++) {
      assertThat(Bytes.crc(block(i), 0, BLOCK)).isEqualTo(crcs[i]);
    }
  }

  @Test
  void shouldMoveBlocksThatAreNoWholeNumberOfPages() {
    MemorySegment odd = pool.asSlice(512, 10_000);
    fill(odd, 5);
    int crc = Bytes.crc(odd, 0, odd.byteSize());
    assertThat(run(List.of(request(IoRequest.Kind.WRITE_BLOCK, 1, 8192, odd, crc))).get(0).result)
        .isEqualTo(SsdPort.OK);
    pool.fill((byte) 0x5a);
    assertThat(run(List.of(request(IoRequest.Kind.READ_BLOCK, 1, 8192, odd, crc))).get(0).result)
        .isEqualTo(SsdPort.OK);

    assertThat(Bytes.crc(odd, 0, odd.byteSize())).isEqualTo(crc);
    assertThat(Bytes.getLong(pool, 512 + 10_000))
        .as("the neighbour")
        .isEqualTo(0x5a5a5a5a5a5a5a5aL);
    assertThat(Bytes.getLong(pool, 504)).isEqualTo(0x5a5a5a5a5a5a5a5aL);
  }

  @Test
  void shouldTellDamageFromAShortReadAndAnError() {
    fill(block(0), 1);
    int crc = Bytes.crc(block(0), 0, BLOCK);
    run(List.of(request(IoRequest.Kind.WRITE_BLOCK, 0, 0, block(0), crc)));
    IoRequest damaged = request(IoRequest.Kind.READ_BLOCK, 1, 0, block(1), crc + 1);
    IoRequest atEnd = request(IoRequest.Kind.READ_BLOCK, 2, (long) BLOCK * COUNT, block(2), crc);
    IoRequest nowhere = request(IoRequest.Kind.READ_BLOCK, 3, -4096, block(3), crc);
    run(List.of(damaged, atEnd, nowhere));

    assertThat(damaged.result).isEqualTo(SsdPort.DAMAGED);
    assertThat(atEnd.result).isEqualTo(SsdPort.SHORT);
    assertThat(nowhere.result).isEqualTo(SsdPort.IO_ERROR);
  }

  @Test
  void shouldNotWriteWhatIsNotWhatWasPublished() {
    fill(block(0), 1);
    IoRequest wrong =
        request(IoRequest.Kind.WRITE_BLOCK, 0, 0, block(0), Bytes.crc(block(0), 0, BLOCK) + 1);
    run(List.of(wrong));
    assertThat(wrong.result).isEqualTo(SsdPort.DAMAGED);
    block(1).fill((byte) 1);
    direct.read(0, block(1), BLOCK);
    assertThat(Bytes.isBlank(block(1), 0, BLOCK)).isTrue();
  }
}
