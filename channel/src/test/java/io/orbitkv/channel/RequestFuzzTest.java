package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Requests of another process: whatever their bytes, they are readable or refused by name. */
class RequestFuzzTest {
  private static final int ROUNDS = 100_000;
  private static final int[] NASTY = {
    0,
    1,
    2,
    15,
    16,
    31,
    32,
    33,
    64,
    65,
    4096,
    65_535,
    65_536,
    65_537,
    1 << 28,
    0x0fff_ffff,
    0x1000_0000,
    0x4000_0000,
    Integer.MAX_VALUE,
    Integer.MIN_VALUE,
    -1,
    -16
  };

  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    arena.close();
  }

  /** Wraps a request and reads everything that a caller may read after it. */
  private interface Reader {
    void read(MemorySegment data, int length);
  }

  private static void readLookup(MemorySegment data, int length) {
    LookupRequest request = new LookupRequest().wrap(data, 0, length);
    long sum = request.queryId() + request.revision() + request.maxLeaseAgeMs();
    for (int i = 0; i < request.namespaces(); i++) {
      sum += Memory.getLong(data, request.namespace(i) + 24);
    }
    for (int i = 0; i < request.hashes(); i++) {
      sum += Memory.getByte(data, request.hash(i) + request.hashBytes() - 1);
    }
    assertThat(request.groupMask()).as("sum %d", sum).isNotZero();
  }

  private static void readRestore(MemorySegment data, int length) {
    RestoreRequest request = new RestoreRequest().wrap(data, 0, length);
    int pages = 0;
    for (int i = 0; i < request.leases(); i++) {
      request.nextSection();
      assertThat(request.skip()).isBetween(0, Protocol.MAX_HASHES);
      for (int p = 0; p < request.count(); p++) {
        request.page(p);
        pages++;
      }
    }
    assertThat(pages).isEqualTo(request.pages());
  }

  private static void readPublish(MemorySegment data, int length) {
    PublishRequest request = new PublishRequest().wrap(data, 0, length);
    int blocks = 0;
    for (int i = 0; i < request.sections(); i++) {
      request.nextSection();
      assertThat(request.group()).isLessThan(Protocol.MAX_GROUPS);
      assertThat(request.position() + request.count()).isPositive();
      Memory.getLong(data, request.parent() + 24);
      for (int b = 0; b < request.count(); b++) {
        Memory.getByte(data, request.hash(b) + request.hashBytes() - 1);
        request.page(b);
        blocks++;
      }
    }
    assertThat(blocks).isEqualTo(request.blocks());
  }

  private static boolean accepts(Reader reader, MemorySegment data, int length) {
    try {
      reader.read(data.asSlice(0, length), length);
      return true;
    } catch (ProtocolException e) {
      assertThat(e).hasMessageMatching("(?s)(lookup|restore|publish): .*=.*");
      assertThat(e.status()).isIn(Status.INVALID, Status.LIMIT);
      return false;
    }
  }

  private void fuzz(Reader reader, MemorySegment valid) {
    int length = (int) valid.byteSize();
    reader.read(valid, length);
    MemorySegment data = arena.allocate(length + 64L, 8);
    Seeds.run(random -> {
      for (int round = 0; round < ROUNDS; round++) {
        MemorySegment.copy(valid, 0, data, 0, length);
        int changed = mutate(random, data, length);
        accepts(reader, data, changed);
      }
    });
  }

  /** Changes one field, or all bytes, or the length, and returns the length. */
  private static int mutate(SplittableRandom random, MemorySegment data, int length) {
    switch (random.nextInt(5)) {
      case 0 -> Memory.putInt(data, 4L * random.nextInt(length / 4), random.nextInt());
      case 1 -> Memory.putInt(data, 4L * random.nextInt(length / 4), nasty(random));
      case 2 -> Memory.putShort(data, 2L * random.nextInt(length / 2), (short) nasty(random));
      case 3 -> Memory.putByte(data, random.nextInt(length), (byte) random.nextInt());
      default -> {
        if (random.nextBoolean()) {
          return random.nextInt(length + 64);
        }
        for (int i = 0; i < length; i++) {
          Memory.putByte(data, i, (byte) random.nextInt());
        }
      }
    }
    return length;
  }

  private static int nasty(SplittableRandom random) {
    return NASTY[random.nextInt(NASTY.length)];
  }

  @Test
  void shouldReadOrRefuseAnyLookup() {
    fuzz(RequestFuzzTest::readLookup, lookup());
  }

  @Test
  void shouldReadOrRefuseAnyRestore() {
    fuzz(RequestFuzzTest::readRestore, restore());
  }

  @Test
  void shouldReadOrRefuseAnyPublish() {
    fuzz(RequestFuzzTest::readPublish, publish());
  }

  private MemorySegment lookup() {
    MemorySegment bytes = arena.allocate(LookupRequest.byteSize(2, 5, 32), 8);
    LookupRequest.writeHeader(bytes, 0, LookupRequest.PREFIX, 32, 2, 5, 9, 1, 1000, 3);
    return bytes;
  }

  private MemorySegment restore() {
    long bytesNeeded =
        RestoreRequest.headerBytes()
            + RestoreRequest.sectionBytes(1)
            + RestoreRequest.sectionBytes(4);
    MemorySegment bytes = arena.allocate(bytesNeeded, 8);
    RestoreRequest.writeHeader(bytes, 0, 1, 1, 2, 5);
    RestoreRequest.writeSection(bytes, 16, 7, 0, 1);
    RestoreRequest.writeSection(bytes, 16 + RestoreRequest.sectionBytes(1), 8, 2, 4);
    return bytes;
  }

  private MemorySegment publish() {
    long bytesNeeded =
        PublishRequest.headerBytes()
            + PublishRequest.sectionBytes(1, 20)
            + PublishRequest.sectionBytes(3, 20);
    MemorySegment bytes = arena.allocate(bytesNeeded, 8);
    PublishRequest.writeHeader(bytes, 0, 1, 1, 2, 20, 4);
    PublishRequest.writeSection(bytes, 16, 0, false, 0, 1);
    PublishRequest.writeSection(bytes, 16 + PublishRequest.sectionBytes(1, 20), 1, true, 9, 3);
    return bytes;
  }

  private static void assertRefused(
      Reader reader, MemorySegment data, int length, Status status, String text) {
    ProtocolException refusal =
        catchThrowableOfType(ProtocolException.class, () -> reader.read(data, length));
    assertThat(refusal).hasMessageContaining(text);
    assertThat(refusal.status()).isEqualTo(status);
  }

  private static void assertByteRefused(
      Reader reader, MemorySegment data, long offset, int value, Status status, String text) {
    byte was = Memory.getByte(data, offset);
    Memory.putByte(data, offset, (byte) value);
    assertRefused(reader, data, (int) data.byteSize(), status, text);
    Memory.putByte(data, offset, was);
  }

  private static void assertIntRefused(
      Reader reader, MemorySegment data, long offset, int value, Status status, String text) {
    int was = Memory.getInt(data, offset);
    Memory.putInt(data, offset, value);
    assertRefused(reader, data, (int) data.byteSize(), status, text);
    Memory.putInt(data, offset, was);
  }

  @Test
  void shouldNameFieldOfLookup() {
    Reader read = RequestFuzzTest::readLookup;
    MemorySegment data = lookup();
    assertByteRefused(read, data, 0, 3, Status.LIMIT, "mode=3, allowed=0..2");
    assertByteRefused(read, data, 1, 15, Status.INVALID, "hash bytes=15, allowed=16..32");
    assertByteRefused(read, data, 1, 33, Status.LIMIT, "hash bytes=33");
    assertByteRefused(read, data, 2, 0, Status.INVALID, "namespaces=0, allowed=1..64");
    assertByteRefused(read, data, 2, 65, Status.LIMIT, "namespaces=65");
    assertIntRefused(read, data, 4, 0, Status.INVALID, "hashes=0");
    assertIntRefused(read, data, 4, 65_537, Status.LIMIT, "hashes=65537, allowed=1..65536");
    assertIntRefused(read, data, 20, -1, Status.INVALID, "lease age ms=-1");
    assertIntRefused(read, data, 24, 0, Status.INVALID, "group mask=0");
    assertIntRefused(read, data, 4, 4, Status.INVALID, "its counts need=");
    assertRefused(read, data, 31, Status.INVALID, "bytes=31");
    assertRefused(read, data, Protocol.MAX_SPAN_BYTES + 1, Status.LIMIT, "bytes=4194305");
  }

  @Test
  void shouldNameFieldOfRestore() {
    Reader read = RequestFuzzTest::readRestore;
    MemorySegment data = restore();
    assertIntRefused(read, data, 8, 0, Status.INVALID, "leases=0");
    assertIntRefused(read, data, 8, 4097, Status.LIMIT, "leases=4097");
    assertIntRefused(read, data, 8, 3, Status.INVALID, "bytes left for a section=0");
    assertIntRefused(read, data, 8, 1, Status.INVALID, "sections need=");
    assertIntRefused(read, data, 12, 6, Status.INVALID, "pages=6, sum=5");
    assertIntRefused(read, data, 24, -1, Status.INVALID, "skip=-1");
    assertIntRefused(read, data, 28, 0, Status.INVALID, "count=0");
    assertIntRefused(read, data, 28, 65_537, Status.LIMIT, "count=65537");
  }

  @Test
  void shouldNameFieldOfPublish() {
    Reader read = RequestFuzzTest::readPublish;
    MemorySegment data = publish();
    assertByteRefused(read, data, 8, 0, Status.INVALID, "sections=0");
    assertByteRefused(read, data, 8, 65, Status.LIMIT, "sections=65");
    assertByteRefused(read, data, 10, 33, Status.LIMIT, "hash bytes=33");
    assertIntRefused(read, data, 12, 0, Status.INVALID, "blocks=0");
    assertIntRefused(read, data, 12, 5, Status.INVALID, "blocks=5, sum=4");
    assertByteRefused(read, data, 16, 64, Status.LIMIT, "group=64, allowed=0..63");
    assertByteRefused(read, data, 18, 2, Status.LIMIT, "hasParent=2");
    assertIntRefused(read, data, 20, -1, Status.INVALID, "position=-1");
    assertIntRefused(read, data, 24, 0, Status.INVALID, "count=0");
    assertIntRefused(read, data, 24, 2, Status.INVALID, "publish:");
  }
}
