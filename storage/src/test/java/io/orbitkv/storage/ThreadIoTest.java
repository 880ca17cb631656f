package io.orbitkv.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.linux.DirectFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class ThreadIoTest extends BlockIoContract {
  @Override
  BlockIo create(Consumer<IoRequest> done) {
    return new ThreadIo("test-io", done);
  }

  /** A file whose first read returns when it is told to. */
  private static final class HungFile implements BlockFile {
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch release = new CountDownLatch(1);

    @Override
    public long read(long offset, MemorySegment into, long length) {
      begun.countDown();
      try {
        release.await();
      } catch (InterruptedException e) {
        return -1;
      }
      return length;
    }

    @Override
    public long write(long offset, MemorySegment from, long length) {
      return length;
    }

    @Override
    public DirectFile direct() {
      return null;
    }
  }

  @Test
  void shouldServeOthersWhileAReadDoesNotReturnAndSaySoAtTheEnd() throws InterruptedException {
    HungFile file = new HungFile();
    CountDownLatch written = new CountDownLatch(20);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment block = arena.allocate(4096, 4096);
      ThreadIo io = new ThreadIo("test-hung", request -> written.countDown());
      IoRequest read = new IoRequest();
      read.block(IoRequest.Kind.READ_BLOCK, file, 0, block, 0);
      io.submit(read);
      file.begun.await();
      for (int i = 0; i < 20; i++) {
        IoRequest write = new IoRequest();
        write.raw(IoRequest.Kind.WRITE_RAW, file, 0, block, 4096);
        assertThat(io.submit(write)).isTrue();
      }
      assertThat(written.await(20, TimeUnit.SECONDS)).isTrue();
      assertThatThrownBy(io::close)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("do not return: number=1");
      file.release.countDown();
      io.close();
    }
  }
}
