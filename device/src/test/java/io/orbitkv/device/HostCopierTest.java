package io.orbitkv.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import com.sun.management.ThreadMXBean;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Mapping.Access;
import io.orbitkv.linux.Memfd;
import io.orbitkv.linux.Memfd.PageSize;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HostCopierTest {
  private static final int BYTES = 4 << 20;
  private static final long WINDOW_BYTES = 1L << ChecksumView.WINDOW_SHIFT;

  private static final long LONG_NS = 30_000_000_000L;

  /** Reversed polynomial of Castagnoli, RFC 3720 appendix B.4. */
  private static final int POLYNOMIAL = 0x82F63B78;

  private final long seed = System.nanoTime();
  private final Random random = new Random(seed);
  private final HostCopier copier = new HostCopier();
  private final Mapping source = Mapping.anonymous(BYTES, false);
  private final Mapping target = Mapping.anonymous(BYTES, false);
  private final ChecksumView targetView = ChecksumView.of(target.segment());
  private final byte[] content = new byte[BYTES];

  HostCopierTest() {
    random.nextBytes(content);
    source.segment().copyFrom(MemorySegment.ofArray(content));
  }

  @AfterEach
  void unmap() {
    source.close();
    target.close();
  }

  /** Bit by bit, as the standard defines it. */
  private static int reference(byte[] bytes, int offset, int length) {
    int sum = ~0;
    for (int i = offset; i < offset + length; i++) {
      sum ^= bytes[i] & 0xff;
      for (int bit = 0; bit < Byte.SIZE; bit++) {
        sum = (sum >>> 1) ^ ((sum & 1) * POLYNOMIAL);
      }
    }
    return ~sum;
  }

  private byte[] targetBytes(long offset, long length) {
    return target.segment().asSlice(offset, length).toArray(JAVA_BYTE);
  }

  private static byte[] range(byte[] bytes, int offset, int length) {
    return Arrays.copyOfRange(bytes, offset, offset + length);
  }

  @Test
  void shouldSumKnownVector() {
    target.segment().asSlice(0, 9).copyFrom(MemorySegment.ofArray("123456789".getBytes(US_ASCII)));

    assertThat(copier.checksum(targetView, 0, 9)).isEqualTo(0xE3069283);
    assertThat(copier.checksum(targetView, 0, 0)).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 7, 32767, 32768, 32769, 65536, 100_003, 1_048_577})
  void shouldCopyAndSumAnySize(int length) {
    copier.beginChecksum();
    copier.copySummed(source.segment(), 13, targetView, 101, length);
    int sum = copier.endChecksum();

    assertThat(sum).as("seed=%d", seed).isEqualTo(reference(content, 13, length));
    assertThat(targetBytes(101, length)).isEqualTo(range(content, 13, length));
    assertThat(target.segment().get(JAVA_BYTE, 100)).isZero();
    assertThat(target.segment().get(JAVA_BYTE, 101L + length)).isZero();
    assertThat(copier.checksum(targetView, 101, length)).isEqualTo(sum);
  }

  @Test
  void shouldCopyWithoutSum() {
    copier.copy(source.segment(), 5, target.segment(), 9, 70_001);

    assertThat(targetBytes(9, 70_001)).isEqualTo(range(content, 5, 70_001));
  }

  @Test
  void shouldSumPiecesOfOneBlockInOrder() {
    var other = ChecksumView.of(target.segment().asSlice(BYTES / 2));
    copier.beginChecksum();
    copier.copySummed(source.segment(), 0, targetView, 5000, 40_000);
    copier.copySummed(source.segment(), 40_000, other, 3, 1);
    assertThat(copier.checksum(targetView, 0, 100)).isNotZero(); // leaves the sum alone
    copier.copySummed(source.segment(), 40_001, targetView, 100_000, 59_999);

    assertThat(copier.endChecksum()).as("seed=%d", seed).isEqualTo(reference(content, 0, 100_000));
  }

  @Test
  void shouldForgetFormerSum() {
    copier.beginChecksum();
    copier.copySummed(source.segment(), 0, targetView, 0, 10);
    copier.beginChecksum();

    assertThat(copier.endChecksum()).isZero();
  }

  @Test
  void shouldRefuseSumThatWasNotBegun() {
    assertThatIllegalStateException()
        .isThrownBy(() -> copier.copySummed(source.segment(), 0, targetView, 0, 1));
    assertThatIllegalStateException().isThrownBy(copier::endChecksum);
  }

  @Test
  void shouldRefuseRangesOutsideSegments() {
    copier.beginChecksum();
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> copier.copySummed(source.segment(), BYTES, targetView, 0, 1));
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> copier.copySummed(source.segment(), 0, targetView, BYTES, 1));
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> copier.checksum(targetView, 1, BYTES));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> ChecksumView.of(MemorySegment.ofArray(content)));
  }

  @Test
  void shouldSumAcrossWindowsOfSparseReadOnlyFile() {
    long byteSize = 2 * WINDOW_BYTES + 12_345;
    try (var fd = Memfd.create("windows", byteSize, PageSize.NORMAL);
        var writable = Mapping.map(fd, byteSize, Access.READ_WRITE, false);
        var readable = Mapping.map(fd, byteSize, Access.READ_ONLY, false)) {
      var view = ChecksumView.of(writable.segment());
      for (long boundary : new long[] {WINDOW_BYTES, 2 * WINDOW_BYTES}) {
        copier.beginChecksum();
        copier.copySummed(source.segment(), 0, view, boundary - 50_001, 60_000);
        assertThat(copier.endChecksum())
            .as("seed=%d", seed)
            .isEqualTo(reference(content, 0, 60_000));

        int sum = copier.checksum(ChecksumView.of(readable.segment()), boundary - 50_001, 60_000);
        assertThat(sum).isEqualTo(reference(content, 0, 60_000));
      }
      assertThat(copier.checksum(view, byteSize - 1, 1)).isEqualTo(reference(new byte[1], 0, 1));
    }
  }

  @Test
  void shouldRefuseToSumUnmappedSegment() {
    target.close();

    assertThatIllegalStateException().isThrownBy(() -> copier.checksum(targetView, 0, 1));
  }

  @Test
  void shouldAllocateNothingOnceCompiled() {
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long startNs = System.nanoTime();
    int blocks = 5_000;
    long allocated;
    do { // when it is compiled depends on the load of the machine
      long before = threads.getCurrentThreadAllocatedBytes();
      copyBlocks(blocks);
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    } while (allocated >= blocks && System.nanoTime() - startNs < LONG_NS);
    assertThat(allocated).isLessThan(blocks);
  }

  private void copyBlocks(int count) {
    for (int i = 0; i < count; i++) {
      copier.copy(source.segment(), 0, target.segment(), 64, 5000);
      copier.beginChecksum();
      copier.copySummed(source.segment(), 64, targetView, 0, 40_000);
      if (copier.endChecksum() != copier.checksum(targetView, 0, 40_000)) {
        throw new AssertionError("sums differ");
      }
    }
  }
}
