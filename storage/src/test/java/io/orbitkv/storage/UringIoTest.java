package io.orbitkv.storage;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.linux.IoUring;
import java.util.function.Consumer;

class UringIoTest extends BlockIoContract {
  @Override
  BlockIo create(Consumer<IoRequest> done) {
    String why = IoUring.whyUnavailable();
    assumeTrue(why == null, why);
    return new UringIo("test-uring", done);
  }
}
