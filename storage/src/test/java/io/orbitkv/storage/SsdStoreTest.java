package io.orbitkv.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.core.SsdPort;
import io.orbitkv.core.SsdRecovery;
import io.orbitkv.linux.DirectFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files on disk: written, closed, damaged in every way, and found again. */
class SsdStoreTest {
  private static final long CAPACITY = 64L << 20;
  private static final int SEGMENT = 4 << 20;
  private static final int BLOCK = 128 << 10;
  private static final int BLOCK_PAGES = BLOCK / SsdPort.PAGE_BYTES;
  private static final int BLOCKS = 8;

  @TempDir private Path directory;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment pool = arena.allocate(16L << 20, 4096);
  private final MemorySegment namespace = MemorySegment.ofArray(new byte[32]).fill((byte) 3);
  private final Map<Integer, Integer> results = new HashMap<>();
  private SsdStore store;
  private int firstPage;

  @AfterEach
  void close() {
    if (store != null) {
      store.close();
    }
    arena.close();
  }

  private void open(boolean reset) {
    store =
        SsdStore.open(
            List.of(directory), CAPACITY, SsdStore.Backend.AUTO, reset, List.of(pool), () -> {});
    firstPage = store.coreConfig(io.orbitkv.core.SsdConfig.WritePolicy.ALL, 0, 0).firstPage();
  }

  private void reopen() {
    store.close();
    open(false);
  }

  private int await(int request) {
    long end = System.nanoTime() + 20_000_000_000L;
    while (!results.containsKey(request)) {
      assertThat(System.nanoTime() - end).as("request is not answered").isNegative();
      store.poll(results::put);
      Thread.onSpinWait();
    }
    return results.remove(request);
  }

  private static MemorySegment hash(int key) {
    MemorySegment hash = MemorySegment.ofArray(new byte[32]);
    Bytes.putLong(hash, 0, key * 0x9e37_79b9_7f4a_7c15L);
    Bytes.putLong(hash, 8, key);
    return hash;
  }

  private int fill(int key) {
    MemorySegment block = pool.asSlice((long) key * BLOCK, BLOCK);
    SplittableRandom random = new SplittableRandom(key);
    for (long i = 0; i < BLOCK; i += Long.BYTES) {
      Bytes.putLong(block, i, random.nextLong());
    }
    return Bytes.crc(block, 0, BLOCK);
  }

  /** Writes blocks with keys from {@code firstKey} on, and their table. */
  private void writeSegment(int segment, long generation, int firstKey) {
    store.openSegment(1, segment, generation);
    assertThat(await(1)).isEqualTo(SsdPort.OK);
    for (int i = 0; i < BLOCKS; i++) {
      int key = firstKey + i;
      int page = firstPage + i * BLOCK_PAGES;
      int crc = fill(key);
      store.write(2, segment, page, 0, (long) key * BLOCK, BLOCK, crc);
      assertThat(await(2)).isEqualTo(SsdPort.OK);
      assertThat(store.addEntry(segment, hash(key), 0, namespace, 1, 32, page, BLOCK, crc))
          .isTrue();
    }
    store.writeTable(3, segment, 1000 + generation, true);
    assertThat(await(3)).isEqualTo(SsdPort.OK);
  }

  /** What a core would be told, with every block read back and compared. */
  private final class Found implements SsdRecovery {
    final Map<Integer, Integer> segmentOfKey = new HashMap<>();
    long lifetimeBytes;
    long nextGeneration;
    private int segment;

    @Override
    public void nextGeneration(long least) {
      nextGeneration = Math.max(nextGeneration, least);
    }

    @Override
    public void segment(int number, long generation, long lifetime) {
      segment = number;
      lifetimeBytes = Math.max(lifetimeBytes, lifetime);
    }

    @Override
    public int space(MemorySegment memory, long at, int group, int hashBytes, int blockBytes) {
      assertThat(MemorySegment.mismatch(memory, at, at + 32, namespace, 0, 32)).isNegative();
      assertThat(group).isEqualTo(1);
      assertThat(hashBytes).isEqualTo(32);
      assertThat(blockBytes).isEqualTo(BLOCK);
      return 7;
    }

    @Override
    public boolean block(int space, MemorySegment memory, long at, int page, int crc) {
      int key = (int) Bytes.getLong(memory, at + 8);
      assertThat(MemorySegment.mismatch(memory, at, at + 32, hash(key), 0, 32)).isNegative();
      segmentOfKey.put(key, segment << 16 | page);
      crcOfKey.put(key, crc);
      return true;
    }

    @Override
    public void end() {}

    private final Map<Integer, Integer> crcOfKey = new HashMap<>();

    /** Reads a block; the result of the port, bytes compared when that is OK. */
    int read(int key) {
      int place = segmentOfKey.get(key);
      int crc = fill(key);
      assertThat(crcOfKey.get(key)).isEqualTo(crc);
      pool.asSlice((long) key * BLOCK, BLOCK).fill((byte) 0);
      store.read(9, place >>> 16, place & 0xffff, 0, (long) key * BLOCK, BLOCK, crc);
      int result = await(9);
      if (result == SsdPort.OK) {
        MemorySegment block = pool.asSlice((long) key * BLOCK, BLOCK);
        assertThat(Bytes.crc(block, 0, BLOCK)).isEqualTo(crc);
      }
      return result;
    }
  }

  private Found recover() {
    Found found = new Found();
    store.recover(found);
    return found;
  }

  private void change(long offset, UnaryOperator<byte[]> change, int length) throws IOException {
    try (FileChannel file =
        FileChannel.open(
            directory.resolve(SsdFile.NAME), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer bytes = ByteBuffer.allocate(length);
      file.read(bytes, offset);
      file.write(ByteBuffer.wrap(change.apply(bytes.array())), offset);
      file.force(true);
    }
  }

  private void flip(long offset) throws IOException {
    change(
        offset,
        bytes -> {
          bytes[0] ^= 4;
          return bytes;
        },
        1);
  }

  private static long segmentAt(int segment) {
    return Geometry.FIRST_SEGMENT + (long) segment * SEGMENT;
  }

  @Test
  void shouldFindEverythingAgain() {
    open(false);
    writeSegment(0, 1, 0);
    writeSegment(5, 2, 20);
    reopen();
    Found found = recover();

    assertThat(found.segmentOfKey).hasSize(2 * BLOCKS);
    assertThat(found.lifetimeBytes).isEqualTo(1002);
    assertThat(store.recovered().summary()).startsWith("16 blocks found in 2 segments");
    for (int key : found.segmentOfKey.keySet()) {
      assertThat(found.read(key)).isEqualTo(SsdPort.OK);
    }
  }

  @Test
  void shouldForgetASegmentOnceItIsOpenedAgain() {
    open(false);
    writeSegment(0, 1, 0);
    store.openSegment(1, 0, 2);
    assertThat(await(1)).isEqualTo(SsdPort.OK);
    reopen();
    assertThat(recover().segmentOfKey).isEmpty();
  }

  @Test
  void shouldMissDamagedBlocksAndServeTheOthers() throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    store.close();
    flip(segmentAt(0) + (firstPage + 2L * BLOCK_PAGES) * SsdPort.PAGE_BYTES + 777);
    open(false);
    Found found = recover();
    for (int key = 0; key < BLOCKS; key++) {
      assertThat(found.read(key)).isEqualTo(key == 2 ? SsdPort.DAMAGED : SsdPort.OK);
    }
  }

  @Test
  void shouldMissBlocksThatChangedPlaces() throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    store.close();
    long first = segmentAt(0) + (long) firstPage * SsdPort.PAGE_BYTES;
    byte[][] blocks = new byte[2][];
    change(first, bytes -> blocks[0] = bytes.clone(), BLOCK);
    change(first + BLOCK, bytes -> (blocks[1] = bytes.clone()) == null ? bytes : blocks[0], BLOCK);
    change(first, bytes -> blocks[1], BLOCK);
    open(false);
    Found found = recover();
    assertThat(found.read(0)).isEqualTo(SsdPort.DAMAGED);
    assertThat(found.read(1)).isEqualTo(SsdPort.DAMAGED);
    assertThat(found.read(2)).isEqualTo(SsdPort.OK);
  }

  @Test
  void shouldDiscardTablesThatAreDamagedForeignExchangedOrGone() throws IOException {
    open(false);
    for (int i = 0; i < 4; i++) {
      writeSegment(i, i + 1, 10 * i);
    }
    store.close();
    flip(segmentAt(0) + SegmentTable.ENTRIES_AT + 40);
    byte[][] table = new byte[1][];
    change(segmentAt(1), bytes -> table[0] = bytes.clone(), 1 << 16);
    change(segmentAt(2), bytes -> table[0], 1 << 16);
    change(segmentAt(3), bytes -> new byte[bytes.length], 1 << 16);
    open(false);
    assertThat(recover().segmentOfKey.keySet())
        .containsExactlyInAnyOrder(10, 11, 12, 13, 14, 15, 16, 17);
    assertThat(store.recovered().damagedSegments()).isEqualTo(1);
    assertThat(store.recovered().exchangedSegments()).isEqualTo(1);
  }

  @Test
  void shouldDiscardTheTablesOfAnotherFile(@TempDir Path other) throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    store.close();
    Path mine = directory;
    directory = other;
    open(false);
    store.close();
    try (FileChannel from = FileChannel.open(mine.resolve(SsdFile.NAME), StandardOpenOption.READ);
        FileChannel to = FileChannel.open(other.resolve(SsdFile.NAME), StandardOpenOption.WRITE)) {
      to.position(segmentAt(0));
      from.transferTo(segmentAt(0), SEGMENT, to);
      to.force(true);
    }
    open(false);
    assertThat(recover().segmentOfKey).isEmpty();
    assertThat(store.recovered().foreignSegments()).isEqualTo(1);
  }

  @Test
  void shouldReadWhatIsLeftOfAFileThatWasCut() throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    writeSegment(9, 2, 20);
    store.close();
    try (FileChannel file =
        FileChannel.open(directory.resolve(SsdFile.NAME), StandardOpenOption.WRITE)) {
      file.truncate(segmentAt(4));
    }
    open(false);
    assertThat(recover().segmentOfKey).hasSize(BLOCKS);
    assertThat(Files.size(directory.resolve(SsdFile.NAME))).isEqualTo(store.capacityBytes());
  }

  @Test
  void shouldVoidWhatWasClearedAfterARestartButNotWhatCameLater() {
    open(false);
    writeSegment(0, 1, 0);
    store.writeClear(4, namespace, 2, 1);
    assertThat(await(4)).isEqualTo(SsdPort.OK);
    writeSegment(1, 2, 20);
    reopen();
    assertThat(recover().segmentOfKey).hasSize(BLOCKS).containsKey(20);
    assertThat(store.recovered().clearedBlocks()).isEqualTo(BLOCKS);
    store.writeClear(4, null, 3, 1);
    assertThat(await(4)).isEqualTo(SsdPort.OK);
    reopen();
    assertThat(recover().segmentOfKey).isEmpty();
  }

  private void open(List<Path> directories) {
    store =
        SsdStore.open(directories, CAPACITY, SsdStore.Backend.AUTO, false, List.of(pool), () -> {});
    firstPage = store.coreConfig(io.orbitkv.core.SsdConfig.WritePolicy.ALL, 0, 0).firstPage();
  }

  @Test
  void shouldVoidAFileThatWasNotThereWhenSomethingWasCleared(@TempDir Path other) {
    int second = Geometry.of(CAPACITY).segments(); // first segment of the other file
    open(List.of(directory, other));
    writeSegment(0, 1, 0);
    writeSegment(second, 2, 20);
    reopen(); // of the first file only
    recover();
    store.writeClear(4, namespace, 2, 1);
    assertThat(await(4)).isEqualTo(SsdPort.OK);

    for (int start = 0; start < 2; start++) {
      store.close();
      open(List.of(directory, other));
      Found found = recover();
      assertThat(found.segmentOfKey).as("start %d", start).isEmpty();
      assertThat(found.nextGeneration).isEqualTo(3);
    }
    writeSegment(second + 1, 3, 20);
    store.close();
    open(List.of(directory, other));
    assertThat(recover().segmentOfKey).hasSize(BLOCKS);
  }

  @Test
  void shouldKeepEarlierClearsWhenWritingALaterOneIsTornAgainAndAgain() throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    store.writeClear(4, namespace, 2, 1);
    assertThat(await(4)).isEqualTo(SsdPort.OK);
    store.close();
    store =
        SsdStore.openFaulty(
            List.of(directory), CAPACITY, List.of(pool), () -> {}, TearingFile::new);
    recover();
    for (int i = 0; i < 3; i++) {
      store.writeClear(4, null, 2, 1);
      assertThat(await(4)).isEqualTo(SsdPort.IO_ERROR);
    }
    reopen();
    assertThat(recover().segmentOfKey).isEmpty();
    assertThat(store.recovered().clearedBlocks()).isEqualTo(BLOCKS);
  }

  /** Leaves rubbish where a clear log should be written, and fails. */
  private record TearingFile(BlockFile file) implements BlockFile {
    @Override
    public long read(long offset, MemorySegment into, long length) {
      return file.read(offset, into, length);
    }

    @Override
    public long write(long offset, MemorySegment from, long length) {
      if (length != ClearLog.BYTES) {
        return file.write(offset, from, length);
      }
      MemorySegment half = from.asSlice(0, length).fill((byte) 0x77);
      file.write(offset, half, length);
      return -5;
    }

    @Override
    public DirectFile direct() {
      return null;
    }
  }

  @Test
  void shouldRefuseAFileThatIsOpenElsewhere() {
    open(false);
    assertThatThrownBy(() -> SsdFile.open(directory, Geometry.of(CAPACITY), true).close())
        .isInstanceOf(StorageException.class)
        .hasMessageContaining("in use by another Manager");
  }

  @ParameterizedTest
  @ValueSource(ints = {Superblock.VERSION - 1, Superblock.VERSION + 1})
  void shouldRefuseAnotherVersionUnlessTold(int version) throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    store.close();
    store = null;
    for (long at : new long[] {8, Geometry.SECOND_SUPERBLOCK + 8}) {
      change(at, bytes -> new byte[] {(byte) version, 0, 0, 0}, 4);
    }
    assertThatThrownBy(() -> open(false))
        .isInstanceOf(StorageException.class)
        .hasMessageContaining("its version=" + version)
        .hasMessageContaining("this Manager's version=" + Superblock.VERSION)
        .hasMessageContaining("--ssd-cache-reset");
    open(true);
    assertThat(recover().segmentOfKey).isEmpty();
    assertThat(store.recovered().newFiles()).isEqualTo(1);
  }

  @Test
  void shouldRefuseForeignFilesOtherCapacitiesAndUseTheSecondSuperblock() throws IOException {
    open(false);
    writeSegment(0, 1, 0);
    store.close();
    flip(20); // one copy is damaged
    open(false);
    assertThat(recover().segmentOfKey).hasSize(BLOCKS);
    store.close();
    store = null;
    assertThatThrownBy(() -> SsdFile.open(directory, Geometry.of(2 * CAPACITY), false).close())
        .hasMessageContaining("another capacity");
    Files.writeString(directory.resolve(SsdFile.NAME), "letters".repeat(2000));
    assertThatThrownBy(() -> open(false)).hasMessageContaining("no SSD file of OrbitKV");
  }

  /** Below four segments of a path, above the limit of a path, above the limit of all paths. */
  @ParameterizedTest
  @CsvSource({
    "1048576, 1, the least of a path",
    "1152921504606846976, 1, the most of a path",
    "12884901888000, 2, segments of all paths=95998"
  })
  void shouldRefuseACapacityOutsideTheLimitsBeforeAFileIsMade(
      long capacity, int paths, String message) throws IOException {
    List<Path> directories =
        IntStream.range(0, paths).mapToObj(i -> directory.resolve("path" + i)).toList();
    assertThatThrownBy(() ->
            SsdStore.open(directories, capacity, SsdStore.Backend.PREAD, false, List.of(), () -> {})
                .close())
        .isInstanceOf(StorageException.class)
        .hasMessageContaining(message);
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void shouldRefuseMoreThanTheDeviceHasWithBothNumbers() throws IOException {
    long free = Files.getFileStore(directory).getUsableSpace();
    assertThatThrownBy(() -> SsdFile.open(directory, Geometry.of(free + (8L << 30)), false).close())
        .isInstanceOf(StorageException.class)
        .hasMessageContaining("wanted bytes=")
        .hasMessageContaining("free bytes=");
    assertThat(Files.exists(directory.resolve(SsdFile.NAME))).isFalse();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void shouldNeverServeAWrongByteWhateverIsFlipped(long seed) throws IOException {
    SplittableRandom random = new SplittableRandom(seed);
    open(false);
    writeSegment(0, 1, 0);
    writeSegment(1, 2, 20);
    for (int round = 0; round < 12; round++) {
      store.close();
      store = null;
      for (int i = 0; i < 4; i++) {
        long within = random.nextInt(3) == 0 ? random.nextInt(8192) : random.nextInt(SEGMENT / 3);
        flip(segmentAt(random.nextInt(2)) + within);
      }
      open(false);
      Found found = recover();
      for (int key : found.segmentOfKey.keySet()) {
        assertThat(found.read(key)).as("seed=%d", seed).isIn(SsdPort.OK, SsdPort.DAMAGED);
      }
    }
  }

  /** Answers no read of a page until it is told to. */
  private record SilentFile(BlockFile file, long page, CountDownLatch answer) implements BlockFile {
    @Override
    public long read(long offset, MemorySegment into, long length) {
      if (offset == page) {
        try {
          answer.await();
        } catch (InterruptedException e) {
          return -4;
        }
      }
      return file.read(offset, into, length);
    }

    @Override
    public long write(long offset, MemorySegment from, long length) {
      return file.write(offset, from, length);
    }

    @Override
    public DirectFile direct() {
      return null;
    }
  }

  @Test
  void shouldServeOtherReadsWhileOneDoesNotReturn() {
    CountDownLatch answer = new CountDownLatch(1);
    long silent = segmentAt(0) + 300L * SsdPort.PAGE_BYTES;
    store =
        SsdStore.openFaulty(
            List.of(directory),
            CAPACITY,
            List.of(pool),
            () -> {},
            file -> new SilentFile(file, silent, answer));
    int crc = fill(0);
    store.write(1, 0, 300, 0, 0, BLOCK, crc);
    assertThat(await(1)).isEqualTo(SsdPort.OK);
    store.write(1, 0, 400, 0, 0, BLOCK, crc);
    assertThat(await(1)).isEqualTo(SsdPort.OK);

    store.read(2, 0, 300, 0, BLOCK, BLOCK, crc);
    for (int i = 0; i < 100; i++) {
      store.read(3, 0, 400, 0, 0, BLOCK, crc);
      assertThat(await(3)).isEqualTo(SsdPort.OK);
    }
    assertThat(results).doesNotContainKey(2);
    answer.countDown();
    assertThat(await(2)).isEqualTo(SsdPort.OK);
    assertThat(Bytes.crc(pool, BLOCK, BLOCK)).isEqualTo(crc);
  }

  @Test
  void shouldReportErrorsOfTheDevice() {
    store =
        SsdStore.openFaulty(
            List.of(directory),
            CAPACITY,
            List.of(pool),
            () -> {},
            file ->
                new BlockFile() {
                  private int reads;

                  @Override
                  public long read(long offset, MemorySegment into, long length) {
                    return reads++ == 0 ? -5 : file.read(offset, into, length - 4096);
                  }

                  @Override
                  public long write(long offset, MemorySegment from, long length) {
                    return length == BLOCK ? -28 : file.write(offset, from, length);
                  }

                  @Override
                  public DirectFile direct() {
                    return null;
                  }
                });
    int crc = fill(0);
    store.write(1, 0, 300, 0, 0, BLOCK, crc);
    assertThat(await(1)).isEqualTo(SsdPort.NO_SPACE);
    store.read(2, 0, 300, 0, 0, BLOCK, crc);
    assertThat(await(2)).isEqualTo(SsdPort.IO_ERROR);
    store.read(3, 0, 300, 0, 0, BLOCK, crc);
    assertThat(await(3)).isEqualTo(SsdPort.SHORT);
  }
}
