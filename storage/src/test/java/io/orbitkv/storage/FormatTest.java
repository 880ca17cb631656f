package io.orbitkv.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** The bytes on disk, and parsers that take any bytes. */
class FormatTest {
  private static final Superblock FILE =
      new Superblock(0x1122_3344_5566_7788L, 0x99aa_bbcc_ddee_ff00L, new Geometry(4 << 20, 15));

  private static MemorySegment memory(int bytes) {
    return MemorySegment.ofArray(new byte[bytes]);
  }

  private static String hex(MemorySegment from, long at, long length) {
    return HexFormat.of().formatHex(from.asSlice(at, length).toArray(ValueLayout.JAVA_BYTE));
  }

  private static SegmentTable table() {
    SegmentTable table = new SegmentTable(memory(FILE.geometry().tableBytes()));
    table.begin(FILE, 3, 42);
    MemorySegment hash = memory(32).fill((byte) 0xab);
    assertThat(table.add(hash, 0, memory(32).fill((byte) 0xcd), 2, 16, 65_536, 12, 0x1234_5678))
        .isTrue();
    assertThat(table.add(hash, 0, memory(32).fill((byte) 0xcd), 2, 16, 65_536, 28, 7)).isTrue();
    table.seal(1L << 40, true);
    SegmentTable.stamp(table.bytes());
    return table;
  }

  @Test
  void shouldWriteTheSuperblockAsDocumented() {
    MemorySegment page = memory(4096);
    FILE.write(page);
    assertThat(hex(page, 0, 64))
        .isEqualTo(
            "4f4b565353440000" // magic
                + "01000000" // version
                + "b116bb0b"
                + "8877665544332211"
                + "00ffeeddccbbaa99"
                + "0000e00300000000" // file bytes
                + "00004000" // segment bytes
                + "0f000000" // segments
                + "00c00000" // table bytes
                + "000000000000000000000000");
    assertThat(Superblock.kind(page)).isEqualTo(Superblock.Kind.VALID);
    assertThat(Superblock.read(page)).isEqualTo(FILE);
  }

  @Test
  void shouldWriteTheTableAsDocumented() {
    MemorySegment bytes = table().bytes();
    assertThat(hex(bytes, 0, 64))
        .isEqualTo(
            "4f4b565441424c00" // magic
                + "01000000"
                + "2f83b4ba"
                + "8877665544332211"
                + "00ffeeddccbbaa99"
                + "2a00000000000000" // generation
                + "03000000" // segment
                + "02000000" // entries
                + "01000000" // spaces
                + "01000000" // closed
                + "0000000000010000"); // lifetime bytes
    assertThat(hex(bytes, 128, 48))
        .isEqualTo("cd".repeat(32) + "02000000" + "10000000" + "00000100" + "00000000");
    assertThat(hex(bytes, 4096, 88))
        .isEqualTo(
            "ab".repeat(32)
                + "00000000"
                + "0c000000"
                + "78563412"
                + "ab".repeat(32)
                + "00000000"
                + "1c000000"
                + "07000000");
    assertThat(SegmentTable.kind(bytes, FILE, 3)).isEqualTo(SegmentTable.Kind.VALID);
    assertThat(SegmentTable.kind(bytes, FILE, 4)).isEqualTo(SegmentTable.Kind.EXCHANGED);
  }

  @Test
  void shouldWriteTheClearLogAsDocumented() {
    ClearLog log = new ClearLog();
    MemorySegment bytes = memory(ClearLog.BYTES);
    log.add(memory(32).fill((byte) 0xee), 9, 1);
    assertThat(log.write(bytes, FILE, 1)).isEqualTo(Geometry.SECOND_CLEAR_LOG);
    assertThat(hex(bytes, 0, 104))
        .isEqualTo(
            "4f4b56434c520000"
                + "01000000"
                + "2b32a235"
                + "8877665544332211"
                + "00ffeeddccbbaa99"
                + "0100000000000000" // sequence
                + "01000000" // records
                + "00".repeat(20)
                + "ee".repeat(32)
                + "0900000000000000");
    ClearLog read = new ClearLog();
    read.read(memory(ClearLog.BYTES), bytes, FILE);
    assertThat(read.isCleared(memory(32).fill((byte) 0xee), 0, 8)).isTrue();
    assertThat(read.isCleared(memory(32).fill((byte) 0xee), 0, 9)).isFalse();
    assertThat(read.isCleared(memory(32).fill((byte) 0xef), 0, 8)).isFalse();
  }

  @Test
  void shouldJoinTooManyClearsToOneOfEverything() {
    ClearLog log = new ClearLog();
    for (int i = 0; i <= ClearLog.MAX_RECORDS; i++) {
      MemorySegment namespace = memory(32);
      Bytes.putInt(namespace, 0, i + 1);
      log.add(namespace, i + 10, 1);
    }
    MemorySegment stranger = memory(32).fill((byte) 0x77);
    assertThat(log.isCleared(stranger, 0, 5)).isTrue();
    assertThat(log.isCleared(stranger, 0, ClearLog.MAX_RECORDS + 10)).isFalse();
  }

  @Test
  void shouldRefuseFurtherNamespacesWhenTheirPlaceIsFull() {
    SegmentTable table = new SegmentTable(memory(FILE.geometry().tableBytes()));
    table.begin(FILE, 0, 1);
    MemorySegment hash = memory(32);
    for (int i = 0; i < SegmentTable.MAX_SPACES; i++) {
      assertThat(table.add(hash, 0, memory(32).fill((byte) i), 0, 32, 4096, 12, 0)).isTrue();
    }
    assertThat(table.add(hash, 0, memory(32).fill((byte) 99), 0, 32, 4096, 12, 0)).isFalse();
    assertThat(table.add(hash, 0, memory(32).fill((byte) 5), 0, 32, 4096, 12, 0)).isTrue();
  }

  @Test
  void shouldTakeAnyBytesForATable() {
    SplittableRandom random = new SplittableRandom(11);
    MemorySegment good = table().bytes();
    MemorySegment bad = memory((int) good.byteSize());
    int valid = 0;
    for (int round = 0; round < 20_000; round++) {
      bad.copyFrom(good);
      for (int i = random.nextInt(4); i >= 0; i--) {
        long at = random.nextInt(10) < 7 ? random.nextInt(256) : random.nextInt(4400);
        bad.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt());
      }
      if (random.nextBoolean()) { // the checksum fits, so that all else has to hold
        boolean sane = SegmentTable.tableBytes(bad, (int) bad.byteSize()) > 0;
        if (sane) {
          SegmentTable.stamp(bad);
        }
      }
      SegmentTable.Kind kind = SegmentTable.kind(bad, FILE, 3);
      if (kind == SegmentTable.Kind.VALID) {
        valid++;
        for (int i = 0; i < SegmentTable.entries(bad); i++) {
          long start = SegmentTable.page(bad, i) * 4096L;
          long end = start + SegmentTable.blockBytes(bad, SegmentTable.space(bad, i));
          assertThat(start).isGreaterThanOrEqualTo(FILE.geometry().tableBytes());
          assertThat(end).isLessThanOrEqualTo(FILE.geometry().segmentBytes());
        }
      }
    }
    assertThat(valid).isPositive();
  }

  @Test
  void shouldTakeAnyBytesForASuperblockAndAClearLog() {
    SplittableRandom random = new SplittableRandom(12);
    MemorySegment page = memory(4096);
    MemorySegment log = memory(ClearLog.BYTES);
    ClearLog good = new ClearLog();
    good.add(null, 5, 1);
    for (int round = 0; round < 5_000; round++) {
      FILE.write(page);
      good.write(log, FILE, 1);
      page.set(ValueLayout.JAVA_BYTE, random.nextInt(64), (byte) random.nextInt());
      log.set(ValueLayout.JAVA_BYTE, random.nextInt(120), (byte) random.nextInt());
      if (Superblock.kind(page) == Superblock.Kind.VALID) {
        assertThat(Superblock.read(page)).isEqualTo(FILE);
      }
      new ClearLog().read(log, log, FILE);
    }
  }
}
