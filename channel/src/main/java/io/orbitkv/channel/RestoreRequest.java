package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * View of the data of a RESTORE command. Belongs to one thread.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  registrationId
 *      4      4  registrationGeneration
 *      8      4  leases          l, at least 1
 *     12      4  pages           sum over the leases, at least 1
 *     16   l sections of 16 + 4·count, each padded to 8:
 *            0   8  leaseId
 *            8   4  skip         blocks at the start of the lease that are not wanted
 *           12   4  count        blocks wanted after them
 *           16      page of each block, u32
 * </pre>
 *
 * A lease is consumed whole, whatever it skips.
 */
public final class RestoreRequest {
  private static final int HEADER_BYTES = 16;
  private static final int SECTION_BYTES = 16;

  private MemorySegment data;
  private long base;
  private long end;
  private int leases;
  private int pages;
  private long section;

  /** Bytes of the fixed part. */
  public static int headerBytes() {
    return HEADER_BYTES;
  }

  /** Bytes of the section of one lease. */
  public static long sectionBytes(int count) {
    return Wire.pad8(SECTION_BYTES + 4L * count);
  }

  /** Writes the fixed part. */
  public static void writeHeader(
      MemorySegment into,
      long at,
      int registrationId,
      int registrationGeneration,
      int leases,
      int pages) {
    Memory.putInt(into, at, registrationId);
    Memory.putInt(into, at + 4, registrationGeneration);
    Memory.putInt(into, at + 8, leases);
    Memory.putInt(into, at + 12, pages);
  }

  /** Writes the fixed part of a section; page i follows at {@link #pageAt}. */
  public static void writeSection(
      MemorySegment into, long sectionAt, long leaseId, int skip, int count) {
    Memory.putLong(into, sectionAt, leaseId);
    Memory.putInt(into, sectionAt + 8, skip);
    Memory.putInt(into, sectionAt + 12, count);
  }

  /** Offset of a page of the section at {@code sectionAt}. */
  public static long pageAt(long sectionAt, int index) {
    return sectionAt + SECTION_BYTES + 4L * index;
  }

  /**
   * Wraps and checks a request, and stands before its first section.
   *
   * @throws ProtocolException naming the field, its value and the rule
   */
  public RestoreRequest wrap(MemorySegment data, long base, int length) {
    this.data = data;
    this.base = base;
    this.end = base + length;
    Wire.require("restore: bytes", length, HEADER_BYTES, Protocol.MAX_SPAN_BYTES);
    leases = Memory.getInt(data, base + 8);
    pages = Memory.getInt(data, base + 12);
    Wire.require("restore: leases", leases, 1, Protocol.MAX_NAMESPACES * Protocol.MAX_GROUPS);
    Wire.require("restore: pages", pages, 1, Protocol.MAX_HASHES);
    checkSections();
    rewind();
    return this;
  }

  private void checkSections() {
    long at = base + HEADER_BYTES;
    long sum = 0;
    for (int i = 0; i < leases; i++) {
      Wire.require(
          "restore: bytes left for a section", end - at, SECTION_BYTES, Protocol.MAX_SPAN_BYTES);
      int skip = Memory.getInt(data, at + 8);
      int count = Memory.getInt(data, at + 12);
      Wire.require("restore: skip", skip, 0, Protocol.MAX_HASHES);
      Wire.require("restore: count", count, 1, Protocol.MAX_HASHES);
      at += sectionBytes(count);
      sum += count;
    }
    if (at != end || sum != pages) {
      throw new ProtocolException(
          Status.INVALID,
          "restore: bytes="
              + (end - base)
              + ", sections need="
              + (at - base)
              + ", pages="
              + pages
              + ", sum="
              + sum);
    }
  }

  /** Registration id. */
  public int registrationId() {
    return Memory.getInt(data, base);
  }

  /** Generation of the registration that the caller captured. */
  public int registrationGeneration() {
    return Memory.getInt(data, base + 4);
  }

  /** Number of leases. */
  public int leases() {
    return leases;
  }

  /** Number of pages in all. */
  public int pages() {
    return pages;
  }

  /** Stands before the first section again. */
  public void rewind() {
    section = -1;
  }

  /** Goes to the next section; to be called {@link #leases} times. */
  public void nextSection() {
    section = section < 0 ? base + HEADER_BYTES : section + sectionBytes(count());
  }

  /** Lease of the section. */
  public long leaseId() {
    return Memory.getLong(data, section);
  }

  /** Blocks of the lease that are skipped. */
  public int skip() {
    return Memory.getInt(data, section + 8);
  }

  /** Blocks of the lease that are wanted. */
  public int count() {
    return Memory.getInt(data, section + 12);
  }

  /** Page of the section's block. */
  public int page(int index) {
    return Memory.getInt(data, pageAt(section, index));
  }
}
