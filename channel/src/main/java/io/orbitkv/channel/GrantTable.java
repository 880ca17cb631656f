package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/**
 * View of the grant memfd of one session: records, dirty bitmap and plan bank. Any thread may use
 * it; each field has one writer at a time as the state of its record says.
 *
 * <pre>
 * offset  bytes  field
 *      0      8  magic            Manager, before version
 *      8      4  version          Manager, last, with release
 *     12      4  records          Manager; 1024
 *     16      4  bankBytes        Manager; 1 MiB
 *    128      8  drains           engine, release; counts settings of dirty bits
 *    256    128  dirty            engine sets, Manager clears; one bit a record
 *    512         1024 records of 192
 * 200704         plan bank of 1 MiB
 * </pre>
 *
 * One record:
 *
 * <pre>
 * offset  bytes  field            written by
 *      0      8  word             CAS of both; {@link GrantWord}
 *      8      4  kind             engine in Reserved; 1 restore, 2 publish
 *     12      4  status           Manager before Granted or Reaped; {@link Status} code
 *     16      4  planOffset       Manager before Granted; bytes into the bank
 *     20      4  planEntries      Manager before Granted
 *     24      4  stored           Manager before Reaped; blocks
 *     28      4  held             Manager before Reaped; blocks that were already held
 *     32      4  refused          Manager before Reaped; blocks
 *     36      4  errorBytes       Manager before Reaped; 0 to 88
 *     40      4  parts            Manager before Granted; parts of the operation
 *     64     88  error            Manager before Reaped; UTF-8
 *    152      4  engineStatus     engine before Drained; {@link Status} code
 *    156      4  entriesDone      engine before Drained; entries whose accesses ended well
 *    160      8  copyNs           engine before Drained; nanoseconds of its own clock
 *    168      8  bytesCopied      engine before Drained
 * </pre>
 */
public class GrantTable {
  /** "OKVGRNT1" in ASCII, first byte lowest. */
  public static final long MAGIC = 0x3154_4e52_4756_4b4fL;

  /** Records a session. */
  public static final int RECORDS = 1024;

  /** Bytes of the plan bank. */
  public static final int BANK_BYTES = 1 << 20;

  /** Longest error text, in bytes. */
  public static final int MAX_ERROR_BYTES = 88;

  /** Most entries of one part of a plan. */
  public static final int MAX_PLAN_ENTRIES = BANK_BYTES / PlanEntry.BYTES;

  /** Kind of a restore: arena to engine pages. */
  public static final int RESTORE = 1;

  /** Kind of a publish: engine pages to arena. */
  public static final int PUBLISH = 2;

  static final int RECORD_BYTES = 192;
  static final long VERSION_OFFSET = 8;
  static final long RECORDS_OFFSET = 12;
  static final long BANK_BYTES_OFFSET = 16;
  static final long DRAINS_OFFSET = 128;
  static final long DIRTY_OFFSET = 256;
  static final long TABLE_OFFSET = 512;
  static final long BANK_OFFSET =
      ChannelDescriptor.alignUp(TABLE_OFFSET + (long) RECORDS * RECORD_BYTES, 4096);

  /** Bytes of the whole region. */
  public static final long REGION_BYTES = BANK_OFFSET + BANK_BYTES;

  /** Words of the dirty bitmap. */
  public static final int DIRTY_WORDS = RECORDS / 64;

  static final long KIND = 8;
  static final long STATUS = 12;
  static final long PLAN_OFFSET = 16;
  static final long PLAN_ENTRIES = 20;
  static final long STORED = 24;
  static final long HELD = 28;
  static final long REFUSED = 32;
  static final long ERROR_BYTES = 36;
  static final long PARTS = 40;
  static final long ERROR = 64;
  static final long ENGINE_STATUS = 152;
  static final long ENTRIES_DONE = 156;
  static final long COPY_NS = 160;
  static final long BYTES_COPIED = 168;

  private final MemorySegment region;

  /** View of a checked region; a subclass may watch the accesses of one side. */
  protected GrantTable(MemorySegment region) {
    this.region = region;
  }

  /** Writes the header of a fresh, zeroed region; the version goes last. */
  public static GrantTable format(MemorySegment region) {
    Memory.putLong(region, 0, MAGIC);
    Memory.putInt(region, RECORDS_OFFSET, RECORDS);
    Memory.putInt(region, BANK_BYTES_OFFSET, BANK_BYTES);
    Memory.putIntRelease(region, VERSION_OFFSET, Protocol.CHANNEL_VERSION); // SYNC: grant header
    return new GrantTable(region);
  }

  /**
   * Opens a region made by the other process.
   *
   * @throws ProtocolException naming what was found and what was wanted
   */
  public static GrantTable open(MemorySegment region) {
    if (region.byteSize() != REGION_BYTES) {
      throw new ProtocolException(
          Status.INVALID, "grant region: bytes=" + region.byteSize() + ", wanted=" + REGION_BYTES);
    }
    int version = Memory.getIntAcquire(region, VERSION_OFFSET); // SYNC: grant header
    if (version != Protocol.CHANNEL_VERSION) {
      throw new ProtocolException(
          Status.VERSION_MISMATCH,
          "grant region: version=" + version + ", wanted=" + Protocol.CHANNEL_VERSION);
    }
    if (Memory.getLong(region, 0) != MAGIC
        || Memory.getInt(region, RECORDS_OFFSET) != RECORDS
        || Memory.getInt(region, BANK_BYTES_OFFSET) != BANK_BYTES) {
      throw new ProtocolException(
          Status.INVALID, "grant region: header is not that of version=" + version);
    }
    return new GrantTable(region);
  }

  private static long record(int slot) {
    if (slot < 0 || slot >= RECORDS) {
      throw new IndexOutOfBoundsException(slot);
    }
    return TABLE_OFFSET + (long) slot * RECORD_BYTES;
  }

  /** The word of a record; what was written before the move that made it is visible. */
  public long wordAcquire(int slot) {
    return Memory.getLongAcquire(region, record(slot)); // SYNC: grant word
  }

  /**
   * Engine: takes a Free or Acknowledged slot for the next generation; returns the new word, or -1.
   */
  public long tryReserve(int slot, int kind) {
    long word = wordAcquire(slot);
    GrantState state = GrantWord.state(word);
    if (state != GrantState.FREE && state != GrantState.ACKNOWLEDGED) {
      return -1;
    }
    long next = GrantWord.of(GrantWord.generation(word) + 1, 0, GrantState.RESERVED);
    if (!Memory.compareAndSetLong(region, record(slot), word, next)) {
      return -1;
    }
    Memory.putInt(region, record(slot) + KIND, kind);
    return next;
  }

  /**
   * Engine: moves the record on; false when the other process, or another thread, moved it first.
   */
  public boolean tryEngineMove(int slot, long word, GrantState next) {
    GrantState state = GrantWord.state(word);
    if (state == null || !state.engineMayMoveTo(next)) {
      throw new IllegalStateException("illegal engine move: from=" + state + ", to=" + next);
    }
    return Memory.compareAndSetLong(
        region, record(slot), word, GrantWord.withState(word, next)); // SYNC: grant word
  }

  /** Manager: moves the record on; false when the other process moved it first. */
  public boolean tryManagerMove(int slot, long word, GrantState next) {
    return tryManagerMove(slot, word, next, GrantWord.part(word));
  }

  /** Manager: moves the record on to another part. */
  public boolean tryManagerMove(int slot, long word, GrantState next, int part) {
    GrantState state = GrantWord.state(word);
    if (state == null || !state.managerMayMoveTo(next)) {
      throw new IllegalStateException("illegal Manager move: from=" + state + ", to=" + next);
    }
    long moved = GrantWord.of(GrantWord.generation(word), part, next);
    return Memory.compareAndSetLong(region, record(slot), word, moved); // SYNC: grant word
  }

  /** Engine: tells the Manager, after Drained or PartDrained, that it should look at the record. */
  public void markDirty(int slot) {
    Memory.getAndOrLong(region, DIRTY_OFFSET + 8L * (slot >> 6), 1L << (slot & 63));
    Memory.getAndAddLong(region, DRAINS_OFFSET, 1);
  }

  /** Manager: changes whenever a dirty bit was set. */
  public long drainsAcquire() {
    return Memory.getLongAcquire(region, DRAINS_OFFSET);
  }

  /**
   * Manager: takes the dirty bits of records 64·{@code word} and on; to be done before the records
   * are read.
   */
  public long takeDirty(int word) {
    long at = DIRTY_OFFSET + 8L * word;
    return Memory.getLongAcquire(region, at) == 0 ? 0 : Memory.getAndSetLong(region, at, 0);
  }

  /** Kind of the operation as the engine wrote it. */
  public int kind(int slot) {
    return Memory.getInt(region, record(slot) + KIND);
  }

  /** Manager: names the plan of the part, before Granted. */
  public void setPlan(int slot, int planOffset, int planEntries, int parts) {
    long at = record(slot);
    Memory.putInt(region, at + STATUS, Status.OK.code());
    Memory.putInt(region, at + PLAN_OFFSET, planOffset);
    Memory.putInt(region, at + PLAN_ENTRIES, planEntries);
    Memory.putInt(region, at + PARTS, parts);
  }

  /**
   * Manager: states the outcome, before Reaped or Revoked. {@code error} may be empty, never null.
   */
  public void setOutcome(int slot, Status status, int stored, int held, int refused, String error) {
    long at = record(slot);
    Memory.putInt(region, at + STATUS, status.code());
    Memory.putInt(region, at + STORED, stored);
    Memory.putInt(region, at + HELD, held);
    Memory.putInt(region, at + REFUSED, refused);
    if (error.isEmpty()) {
      Memory.putInt(region, at + ERROR_BYTES, 0);
      return;
    }
    byte[] text = error.getBytes(StandardCharsets.UTF_8);
    int length = Math.min(text.length, MAX_ERROR_BYTES);
    while (length < text.length && length > 0 && (text[length] & 0xC0) == 0x80) {
      length--; // never cut a character
    }
    MemorySegment.copy(MemorySegment.ofArray(text), 0, region, at + ERROR, length);
    Memory.putInt(region, at + ERROR_BYTES, length);
  }

  /** Engine: offset of the plan in the bank; to be checked before use. */
  public int planOffset(int slot) {
    return Memory.getInt(region, record(slot) + PLAN_OFFSET);
  }

  /** Engine: entries of the plan; to be checked before use. */
  public int planEntries(int slot) {
    return Memory.getInt(region, record(slot) + PLAN_ENTRIES);
  }

  /** Engine: parts of the operation. */
  public int parts(int slot) {
    return Memory.getInt(region, record(slot) + PARTS);
  }

  /** Engine: what the Manager says of the operation. */
  public Status status(int slot) {
    return Status.of(Memory.getInt(region, record(slot) + STATUS));
  }

  /** Engine: blocks stored by a reaped publish. */
  public int stored(int slot) {
    return Memory.getInt(region, record(slot) + STORED);
  }

  /** Engine: blocks that were already held when a reaped publish wanted to store them. */
  public int held(int slot) {
    return Memory.getInt(region, record(slot) + HELD);
  }

  /** Engine: blocks that a reaped publish could not store. */
  public int refused(int slot) {
    return Memory.getInt(region, record(slot) + REFUSED);
  }

  /** Engine: error text, empty when there is none. */
  public String error(int slot) {
    long at = record(slot);
    int length = Math.clamp(Memory.getInt(region, at + ERROR_BYTES), 0, MAX_ERROR_BYTES);
    byte[] text = new byte[length];
    MemorySegment.copy(
        region, java.lang.foreign.ValueLayout.JAVA_BYTE, at + ERROR, text, 0, length);
    return new String(text, StandardCharsets.UTF_8);
  }

  /** Engine: its result, before Drained. */
  public void setEngineResult(
      int slot, Status status, int entriesDone, long copyNs, long bytesCopied) {
    long at = record(slot);
    Memory.putInt(region, at + ENGINE_STATUS, status.code());
    Memory.putInt(region, at + ENTRIES_DONE, entriesDone);
    Memory.putLong(region, at + COPY_NS, copyNs);
    Memory.putLong(region, at + BYTES_COPIED, bytesCopied);
  }

  /** Manager: the engine's result; untrusted. */
  public Status engineStatus(int slot) {
    return Status.of(Memory.getInt(region, record(slot) + ENGINE_STATUS));
  }

  /** Manager: entries that the engine says are done; untrusted. */
  public int entriesDone(int slot) {
    return Memory.getInt(region, record(slot) + ENTRIES_DONE);
  }

  /** Manager: duration of the copy as the engine says; untrusted, a statistic. */
  public long copyNs(int slot) {
    return Memory.getLong(region, record(slot) + COPY_NS);
  }

  /** Offset, in {@link #memory()}, of a plan that begins {@code planOffset} bytes into the bank. */
  public static long bankAt(int planOffset) {
    return BANK_OFFSET + planOffset;
  }

  /** The region; {@link PlanEntry} reads and writes it at offsets of {@link #bankAt}. */
  public MemorySegment memory() {
    return region;
  }
}
