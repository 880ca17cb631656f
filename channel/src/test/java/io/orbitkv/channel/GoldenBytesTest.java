package io.orbitkv.channel;

import static io.orbitkv.channel.Golden.assertGolden;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class GoldenBytesTest {
  private static final byte DIRT = (byte) 0xff;

  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    arena.close();
  }

  private MemorySegment zeroed(long bytes) {
    return arena.allocate(bytes, 4096);
  }

  private MemorySegment dirty(long bytes) {
    return zeroed(bytes).fill(DIRT);
  }

  private static void fill(MemorySegment into, long at, int length, int first) {
    for (int i = 0; i < length; i++) {
      Memory.putByte(into, at + i, (byte) (first + i));
    }
  }

  @Test
  void shouldLayOutCommand() {
    MemorySegment region = zeroed(ChannelDescriptor.REGION_BYTES);
    Command command =
        new Command()
            .set(
                Opcode.LOOKUP,
                0x01020304,
                0x1112131415161718L,
                0x2122232425262728L,
                0x3132333435363738L,
                0x4142434445464748L)
            .data(0x40, 0x1234, 0x100_0040);

    assertThat(
            new CommandRing.Producer(region, ChannelDescriptor.PUBLISH_REPLIES).tryWrite(command))
        .isTrue();

    long ring = 512 + 3 * (256 + 1024 * 64);
    assertGolden("command.hex", region, ring + 256, Command.BYTES);
    Command read = new Command();
    assertThat(new CommandRing.Consumer(region, ChannelDescriptor.PUBLISH_REPLIES).tryRead(read))
        .isTrue();
    assertThat(read).usingRecursiveComparison().isEqualTo(command);
    assertThat(Memory.getLong(region, ring)).as("tail").isEqualTo(1);
    assertThat(Memory.getLong(region, ring + 128)).as("head").isEqualTo(1);
  }

  @Test
  void shouldLayOutChannelHeader() {
    MemorySegment region = zeroed(ChannelDescriptor.REGION_BYTES);

    ChannelDescriptor.format(region, 0x0102030405060708L, 0x1112131415161718L, 7);
    Memory.putIntVolatile(region, ChannelDescriptor.MANAGER_SLEEPS_OFFSET, 0x21);
    Memory.putIntVolatile(region, ChannelDescriptor.RESTORE_SLEEPS_OFFSET, 0x22);
    Memory.putIntVolatile(region, ChannelDescriptor.PUBLISH_SLEEPS_OFFSET, 0x23);

    assertGolden("channel-header.hex", region, 0, 512);
    ChannelDescriptor.check(region);
  }

  @Test
  void shouldLayOutByteRings() {
    MemorySegment region = zeroed(ChannelDescriptor.REGION_BYTES);
    long byteRing = 266_240 + (8L << 20);
    var producer = new ByteRing.Producer(region, ChannelDescriptor.QUERY_REPLIES);
    var consumer = new ByteRing.Consumer(region, ChannelDescriptor.QUERY_REPLIES);
    Command command = new Command();
    producer.tryClaim(1);
    producer.commit(1, command);
    consumer.take(command, dirty(8));

    long at = producer.tryClaim(5);
    MemorySegment.copy(
        MemorySegment.ofArray(new byte[] {'o', 'r', 'b', 'i', 't'}), 0, region, at, 5);
    producer.commit(5, command);

    assertThat(at).isEqualTo(byteRing + 16);
    assertGolden("byte-ring-span.hex", region, byteRing, 21);
    assertThat(Memory.getLong(region, 512 + (256 + 1024 * 64) + 136)).as("byteHead").isEqualTo(64);
  }

  @Test
  void shouldLayOutGrantHeader() {
    MemorySegment region = zeroed(GrantTable.REGION_BYTES);
    GrantTable table = GrantTable.format(region);

    table.markDirty(0);
    table.markDirty(65);
    table.markDirty(1023);

    assertGolden("grant-header.hex", region, 0, 512);
    assertThat(table.drainsAcquire()).isEqualTo(3);
    assertThat(table.takeDirty(0)).isEqualTo(1);
    assertThat(table.takeDirty(1)).isEqualTo(2);
    assertThat(table.takeDirty(GrantTable.DIRTY_WORDS - 1)).isEqualTo(Long.MIN_VALUE);
    assertThat(table.takeDirty(0)).isZero();
  }

  @Test
  void shouldLayOutGrantRecord() {
    MemorySegment region = zeroed(GrantTable.REGION_BYTES);
    GrantTable table = GrantTable.format(region);
    int slot = 1023;

    long word = table.tryReserve(slot, GrantTable.PUBLISH);
    assertThat(table.tryManagerMove(slot, word, GrantState.PREPARING)).isTrue();
    table.setPlan(slot, 0x20, 3, 4);
    word = table.wordAcquire(slot);
    assertThat(table.tryManagerMove(slot, word, GrantState.GRANTED)).isTrue();
    assertThat(table.tryEngineMove(slot, table.wordAcquire(slot), GrantState.ACTIVE)).isTrue();
    table.setEngineResult(slot, Status.COPY_FAILED, 0x51, 0x6162636465666768L, 0x7172737475767778L);
    table.setOutcome(slot, Status.POOL_FULL, 0x31, 0x32, 0x33, "pool full");

    assertGolden("grant-record.hex", region, 512 + 1023 * 192, 192);
    GrantTable read = GrantTable.open(region);
    assertThat(read.kind(slot)).isEqualTo(GrantTable.PUBLISH);
    assertThat(read.status(slot)).isEqualTo(Status.POOL_FULL);
    assertThat(read.planOffset(slot)).isEqualTo(0x20);
    assertThat(read.planEntries(slot)).isEqualTo(3);
    assertThat(read.parts(slot)).isEqualTo(4);
    assertThat(read.stored(slot)).isEqualTo(0x31);
    assertThat(read.held(slot)).isEqualTo(0x32);
    assertThat(read.refused(slot)).isEqualTo(0x33);
    assertThat(read.error(slot)).isEqualTo("pool full");
    assertThat(read.engineStatus(slot)).isEqualTo(Status.COPY_FAILED);
    assertThat(read.entriesDone(slot)).isEqualTo(0x51);
    assertThat(read.copyNs(slot)).isEqualTo(0x6162636465666768L);
  }

  @Test
  void shouldLayOutPlanEntryInBank() {
    MemorySegment region = dirty(GrantTable.REGION_BYTES);
    long at = GrantTable.bankAt(64);

    PlanEntry.put(
        region,
        at,
        0xfffe,
        63,
        0x01020304,
        0x1112131415161718L,
        0x2122232425262728L,
        0x31323334,
        0);
    PlanEntry.putCrc(region, at, 0xdeadbeef);

    assertThat(at).isEqualTo(200_704 + 64);
    assertThat(GrantTable.REGION_BYTES).isEqualTo(200_704 + (1 << 20));
    assertGolden("plan-entry.hex", region, at, PlanEntry.BYTES);
    assertThat(PlanEntry.arena(region, at)).isEqualTo(0xfffe);
    assertThat(PlanEntry.group(region, at)).isEqualTo(63);
    assertThat(PlanEntry.page(region, at)).isEqualTo(0x01020304);
    assertThat(PlanEntry.allocation(region, at)).isEqualTo(0x1112131415161718L);
    assertThat(PlanEntry.offset(region, at)).isEqualTo(0x2122232425262728L);
    assertThat(PlanEntry.length(region, at)).isEqualTo(0x31323334);
    assertThat(PlanEntry.crc(region, at)).isEqualTo(0xdeadbeef);
  }

  @Test
  void shouldPackGrantWord() {
    long word = GrantWord.of(0xabcd_ef01_2345L, 0xfed, GrantState.ACKNOWLEDGED);

    assertThat(word).isEqualTo(0xabcd_ef01_2345_fedaL);
    assertThat(GrantWord.generation(word)).isEqualTo(0xabcd_ef01_2345L);
    assertThat(GrantWord.part(word)).isEqualTo(0xfed);
    assertThat(GrantWord.state(word)).isEqualTo(GrantState.ACKNOWLEDGED);
    assertThat(GrantWord.withState(word, GrantState.ACTIVE)).isEqualTo(0xabcd_ef01_2345_fed5L);
    assertThat(GrantWord.state(0xf)).isNull();
    assertThat(GrantWord.operationId(0x3ff, 3)).isEqualTo(0xfff);
    assertThat(GrantWord.slotOf(0xfffL)).isEqualTo(0x3ff);
    assertThat(GrantWord.generationOf(0xfffL)).isEqualTo(3);
  }

  @Test
  void shouldLayOutFrameHeader() {
    MemorySegment bytes = dirty(FrameHeader.BYTES);
    FrameHeader header =
        new FrameHeader(Protocol.LIFECYCLE_VERSION, 0x1112131415161718L, 0x01020304);

    header.writeTo(bytes);

    assertGolden("frame-header.hex", bytes, 0, FrameHeader.BYTES);
    assertThat(FrameHeader.readFrom(bytes)).isEqualTo(header);
  }

  @Test
  void shouldLayOutLookupRequest() {
    int length = (int) LookupRequest.byteSize(2, 3, 16);
    MemorySegment bytes = dirty(length + 8);
    LookupRequest.writeHeader(
        bytes,
        8,
        LookupRequest.PREFIX,
        16,
        2,
        3,
        0x1112131415161718L,
        0x21222324,
        0x31323334,
        0x8000_0000_0000_0001L);
    fill(bytes, 8 + LookupRequest.namespaceAt(0), 64, 0x40);
    fill(bytes, 8 + LookupRequest.hashesAt(2), 48, 0x80);

    assertGolden("lookup-request.hex", bytes, 8, length);
    LookupRequest read = new LookupRequest().wrap(bytes, 8, length);
    assertThat(read.mode()).isEqualTo(LookupRequest.PREFIX);
    assertThat(read.hashBytes()).isEqualTo(16);
    assertThat(read.namespaces()).isEqualTo(2);
    assertThat(read.hashes()).isEqualTo(3);
    assertThat(read.queryId()).isEqualTo(0x1112131415161718L);
    assertThat(read.revision()).isEqualTo(0x21222324);
    assertThat(read.maxLeaseAgeMs()).isEqualTo(0x31323334);
    assertThat(read.groupMask()).isEqualTo(0x8000_0000_0000_0001L);
    assertThat(bytes.get(JAVA_BYTE, read.namespace(1))).isEqualTo((byte) 0x60);
    assertThat(bytes.get(JAVA_BYTE, read.hash(2))).isEqualTo((byte) 0xa0);
  }

  @Test
  void shouldLayOutLookupReply() {
    int length = (int) LookupReply.byteSize(2, 65, 1);
    MemorySegment bytes = dirty(length + 8);
    LookupReply.writeHeader(bytes, 8, LookupReply.READY, 2, 65, 1, 60_000);
    for (MissReason reason : MissReason.values()) {
      LookupReply.putMisses(bytes, 8, reason.code(), 0x10 + reason.code());
    }
    long first = LookupReply.groupAt(8, 0, 65);
    LookupReply.writeGroup(bytes, first, 3, MissReason.NONE.code(), 65, 65);
    LookupReply.putBits(bytes, first, 0, -1L);
    LookupReply.putBits(bytes, first, 1, 1L);
    long second = LookupReply.groupAt(8, 1, 65);
    LookupReply.writeGroup(bytes, second, 63, MissReason.EVICTED.code(), 3, 2);
    LookupReply.putBits(bytes, second, 0, 0x13L);
    LookupReply.putBits(bytes, second, 1, 0);
    long lease = LookupReply.leaseAt(8, 0, 2, 65);
    LookupReply.writeLease(bytes, lease, 0x2122232425262728L, 65, 1, 3);

    assertGolden("lookup-reply.hex", bytes, 8, length);
    assertThat(LookupReply.outcome(bytes, 8)).isEqualTo(LookupReply.READY);
    assertThat(LookupReply.groups(bytes, 8)).isEqualTo(2);
    assertThat(LookupReply.hashes(bytes, 8)).isEqualTo(65);
    assertThat(LookupReply.leases(bytes, 8)).isEqualTo(1);
    assertThat(LookupReply.leaseAgeMs(bytes, 8)).isEqualTo(60_000);
    assertThat(LookupReply.misses(bytes, 8, MissReason.BUDGET)).isEqualTo(0x16);
    assertThat(LookupReply.group(bytes, second)).isEqualTo(63);
    assertThat(LookupReply.firstMiss(bytes, second)).isEqualTo(MissReason.EVICTED);
    assertThat(LookupReply.present(bytes, second)).isEqualTo(3);
    assertThat(LookupReply.prefix(bytes, second)).isEqualTo(2);
    assertThat(LookupReply.bits(bytes, second, 0)).isEqualTo(0x13);
    assertThat(LookupReply.leaseId(bytes, lease)).isEqualTo(0x2122232425262728L);
    assertThat(LookupReply.leaseBlocks(bytes, lease)).isEqualTo(65);
    assertThat(LookupReply.leaseNamespace(bytes, lease)).isEqualTo(1);
    assertThat(LookupReply.leaseGroup(bytes, lease)).isEqualTo(3);
  }

  @Test
  void shouldClearMissCountsWithHeader() {
    MemorySegment bytes = dirty(LookupReply.byteSize(0, 0, 0));

    LookupReply.writeHeader(bytes, 0, LookupReply.MISS, 0, 0, 0, 0);

    for (MissReason reason : MissReason.values()) {
      assertThat(LookupReply.misses(bytes, 0, reason)).as("%s", reason).isZero();
    }
  }

  @Test
  void shouldLayOutRestoreRequest() {
    int length =
        (int)
            (RestoreRequest.headerBytes()
                + RestoreRequest.sectionBytes(1)
                + RestoreRequest.sectionBytes(2));
    MemorySegment bytes = zeroed(length + 8);
    RestoreRequest.writeHeader(bytes, 8, 0x01020304, 0x11121314, 2, 3);
    long at = 8L + RestoreRequest.headerBytes();
    RestoreRequest.writeSection(bytes, at, 0x2122232425262728L, 5, 1);
    Memory.putInt(bytes, RestoreRequest.pageAt(at, 0), 0x31323334);
    at += RestoreRequest.sectionBytes(1);
    RestoreRequest.writeSection(bytes, at, 0x4142434445464748L, 0, 2);
    Memory.putInt(bytes, RestoreRequest.pageAt(at, 0), 0x51);
    Memory.putInt(bytes, RestoreRequest.pageAt(at, 1), 0x52);

    assertGolden("restore-request.hex", bytes, 8, length);
    RestoreRequest read = new RestoreRequest().wrap(bytes, 8, length);
    assertThat(read.registrationId()).isEqualTo(0x01020304);
    assertThat(read.registrationGeneration()).isEqualTo(0x11121314);
    assertThat(read.leases()).isEqualTo(2);
    assertThat(read.pages()).isEqualTo(3);
    read.nextSection();
    assertThat(read.leaseId()).isEqualTo(0x2122232425262728L);
    assertThat(read.skip()).isEqualTo(5);
    assertThat(read.count()).isEqualTo(1);
    assertThat(read.page(0)).isEqualTo(0x31323334);
    read.nextSection();
    assertThat(read.leaseId()).isEqualTo(0x4142434445464748L);
    assertThat(read.skip()).isZero();
    assertThat(read.count()).isEqualTo(2);
    assertThat(read.page(1)).isEqualTo(0x52);
  }

  @Test
  void shouldLayOutPublishRequest() {
    int length =
        (int)
            (PublishRequest.headerBytes()
                + PublishRequest.sectionBytes(1, 20)
                + PublishRequest.sectionBytes(2, 20));
    MemorySegment bytes = zeroed(length + 8);
    PublishRequest.writeHeader(bytes, 8, 0x01020304, 0x11121314, 2, 20, 3);
    long at = 8L + PublishRequest.headerBytes();
    PublishRequest.writeSection(bytes, at, 3, true, 0x21222324, 1);
    fill(bytes, PublishRequest.parentAt(at), 20, 0x30);
    fill(bytes, PublishRequest.hashAt(at, 0, 20), 20, 0x50);
    Memory.putInt(bytes, PublishRequest.pageAt(at, 0, 1, 20), 0x61);
    at += PublishRequest.sectionBytes(1, 20);
    fill(bytes, PublishRequest.parentAt(at), 32, 0x77);
    PublishRequest.writeSection(bytes, at, 63, false, 0, 2);
    fill(bytes, PublishRequest.hashAt(at, 0, 20), 20, 0x80);
    fill(bytes, PublishRequest.hashAt(at, 1, 20), 20, 0xa0);
    Memory.putInt(bytes, PublishRequest.pageAt(at, 0, 2, 20), 0x71);
    Memory.putInt(bytes, PublishRequest.pageAt(at, 1, 2, 20), 0x72);

    assertGolden("publish-request.hex", bytes, 8, length);
    PublishRequest read = new PublishRequest().wrap(bytes, 8, length);
    assertThat(read.registrationId()).isEqualTo(0x01020304);
    assertThat(read.registrationGeneration()).isEqualTo(0x11121314);
    assertThat(read.sections()).isEqualTo(2);
    assertThat(read.hashBytes()).isEqualTo(20);
    assertThat(read.blocks()).isEqualTo(3);
    read.nextSection();
    assertThat(read.group()).isEqualTo(3);
    assertThat(read.hasParent()).isTrue();
    assertThat(read.position()).isEqualTo(0x21222324);
    assertThat(read.count()).isEqualTo(1);
    assertThat(bytes.get(JAVA_BYTE, read.parent())).isEqualTo((byte) 0x30);
    assertThat(bytes.get(JAVA_BYTE, read.hash(0))).isEqualTo((byte) 0x50);
    assertThat(read.page(0)).isEqualTo(0x61);
    read.nextSection();
    assertThat(read.group()).isEqualTo(63);
    assertThat(read.hasParent()).isFalse();
    assertThat(bytes.get(JAVA_BYTE, read.hash(1))).isEqualTo((byte) 0xa0);
    assertThat(read.page(1)).isEqualTo(0x72);
  }

  @Test
  void shouldLayOutPublishReply() {
    int length = (int) PublishReply.byteSize(4);
    MemorySegment bytes = dirty(length + 8);

    PublishReply.writeHeader(bytes, 8, 4);
    PublishReply.putResult(bytes, 8, 0, PublishReply.STORED);
    PublishReply.putResult(bytes, 8, 1, PublishReply.HELD);
    PublishReply.putResult(bytes, 8, 2, PublishReply.REFUSED_POOL_FULL);
    PublishReply.putResult(bytes, 8, 3, PublishReply.NOT_STORED);

    assertGolden("publish-reply.hex", bytes, 8, length);
    assertThat(PublishReply.blocks(bytes, 8)).isEqualTo(4);
    assertThat(PublishReply.result(bytes, 8, 3)).isEqualTo(PublishReply.NOT_STORED);
  }
}
