package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * View of the data of a PUBLISH command. Belongs to one thread.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  registrationId
 *      4      4  registrationGeneration
 *      8      2  sections        s, at least 1
 *     10      2  hashBytes       16 to 32
 *     12      4  blocks          sum over the sections, at least 1
 *     16   s sections of 48 + hashBytes·count (padded to 8) + 4·count (padded to 8):
 *            0   2  group        id
 *            2   2  hasParent    1 when the first block has a parent
 *            4   4  position     position of the first block in its chain
 *            8   4  count        blocks
 *           12   4  zero
 *           16  32  parent       hash of the block before the first one, zero padded
 *           48      hash of each block
 *                   page of each block, u32
 * </pre>
 *
 * The blocks of a section follow each other in one chain: each is the parent of the next.
 */
public final class PublishRequest {
  private static final int HEADER_BYTES = 16;
  private static final int SECTION_BYTES = 48;

  private MemorySegment data;
  private long base;
  private long end;
  private int sections;
  private int hashBytes;
  private int blocks;
  private long section;

  /** Bytes of the fixed part. */
  public static int headerBytes() {
    return HEADER_BYTES;
  }

  /** Bytes of one section. */
  public static long sectionBytes(int count, int hashBytes) {
    return SECTION_BYTES + Wire.pad8((long) count * hashBytes) + Wire.pad8(4L * count);
  }

  /** Writes the fixed part. */
  public static void writeHeader(
      MemorySegment into,
      long at,
      int registrationId,
      int registrationGeneration,
      int sections,
      int hashBytes,
      int blocks) {
    Memory.putInt(into, at, registrationId);
    Memory.putInt(into, at + 4, registrationGeneration);
    Memory.putShort(into, at + 8, (short) sections);
    Memory.putShort(into, at + 10, (short) hashBytes);
    Memory.putInt(into, at + 12, blocks);
  }

  /** Writes the fixed part of a section but its parent, which goes to {@link #parentAt}. */
  public static void writeSection(
      MemorySegment into, long sectionAt, int group, boolean hasParent, int position, int count) {
    Memory.putShort(into, sectionAt, (short) group);
    Memory.putShort(into, sectionAt + 2, (short) (hasParent ? 1 : 0));
    Memory.putInt(into, sectionAt + 4, position);
    Memory.putInt(into, sectionAt + 8, count);
    Memory.putInt(into, sectionAt + 12, 0);
    for (int i = 0; i < Protocol.MAX_HASH_BYTES; i += 8) {
      Memory.putLong(into, parentAt(sectionAt) + i, 0);
    }
  }

  /** Offset of the parent hash of the section at {@code sectionAt}. */
  public static long parentAt(long sectionAt) {
    return sectionAt + 16;
  }

  /** Offset of a block hash of the section at {@code sectionAt}. */
  public static long hashAt(long sectionAt, int index, int hashBytes) {
    return sectionAt + SECTION_BYTES + (long) index * hashBytes;
  }

  /** Offset of a page of the section at {@code sectionAt}. */
  public static long pageAt(long sectionAt, int index, int count, int hashBytes) {
    return sectionAt + SECTION_BYTES + Wire.pad8((long) count * hashBytes) + 4L * index;
  }

  /**
   * Wraps and checks a request, and stands before its first section.
   *
   * @throws ProtocolException naming the field, its value and the rule
   */
  public PublishRequest wrap(MemorySegment data, long base, int length) {
    this.data = data;
    this.base = base;
    this.end = base + length;
    Wire.require("publish: bytes", length, HEADER_BYTES, Protocol.MAX_SPAN_BYTES);
    sections = Short.toUnsignedInt(Memory.getShort(data, base + 8));
    hashBytes = Short.toUnsignedInt(Memory.getShort(data, base + 10));
    blocks = Memory.getInt(data, base + 12);
    Wire.require("publish: sections", sections, 1, Protocol.MAX_GROUPS);
    Wire.require(
        "publish: hash bytes", hashBytes, Protocol.MIN_HASH_BYTES, Protocol.MAX_HASH_BYTES);
    Wire.require("publish: blocks", blocks, 1, Protocol.MAX_HASHES);
    checkSections();
    rewind();
    return this;
  }

  private void checkSections() {
    long at = base + HEADER_BYTES;
    long sum = 0;
    for (int i = 0; i < sections; i++) {
      Wire.require(
          "publish: bytes left for a section", end - at, SECTION_BYTES, Protocol.MAX_SPAN_BYTES);
      int count = Memory.getInt(data, at + 8);
      Wire.require(
          "publish: group",
          Short.toUnsignedInt(Memory.getShort(data, at)),
          0,
          Protocol.MAX_GROUPS - 1);
      Wire.require("publish: hasParent", Memory.getShort(data, at + 2), 0, 1);
      Wire.require(
          "publish: position",
          Memory.getInt(data, at + 4),
          0,
          Integer.MAX_VALUE - Protocol.MAX_HASHES);
      Wire.require("publish: count", count, 1, Protocol.MAX_HASHES);
      at += sectionBytes(count, hashBytes);
      sum += count;
    }
    if (at != end || sum != blocks) {
      throw new ProtocolException(
          Status.INVALID,
          "publish: bytes="
              + (end - base)
              + ", sections need="
              + (at - base)
              + ", blocks="
              + blocks
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

  /** Number of sections. */
  public int sections() {
    return sections;
  }

  /** Bytes of each hash. */
  public int hashBytes() {
    return hashBytes;
  }

  /** Number of blocks in all. */
  public int blocks() {
    return blocks;
  }

  /** Stands before the first section again. */
  public void rewind() {
    section = -1;
  }

  /** Goes to the next section; to be called {@link #sections} times. */
  public void nextSection() {
    section = section < 0 ? base + HEADER_BYTES : section + sectionBytes(count(), hashBytes);
  }

  /** Group id of the section. */
  public int group() {
    return Short.toUnsignedInt(Memory.getShort(data, section));
  }

  /** True when the first block of the section has a parent. */
  public boolean hasParent() {
    return Memory.getShort(data, section + 2) != 0;
  }

  /** Position of the section's first block in its chain. */
  public int position() {
    return Memory.getInt(data, section + 4);
  }

  /** Blocks of the section. */
  public int count() {
    return Memory.getInt(data, section + 8);
  }

  /** Offset of the parent hash in the wrapped segment. */
  public long parent() {
    return parentAt(section);
  }

  /** Offset of a block hash in the wrapped segment. */
  public long hash(int index) {
    return hashAt(section, index, hashBytes);
  }

  /** Page of a block of the section. */
  public int page(int index) {
    return Memory.getInt(data, pageAt(section, index, count(), hashBytes));
  }
}
