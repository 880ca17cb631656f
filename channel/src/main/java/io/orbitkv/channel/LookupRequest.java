package io.orbitkv.channel;

import java.lang.foreign.MemorySegment;

/**
 * View of the data of a LOOKUP command. Belongs to one thread.
 *
 * <pre>
 * offset     bytes  field
 *      0         1  mode            0 candidates, 1 prefix, 2 all
 *      1         1  hashBytes       16 to 32
 *      2         2  namespaces      n, 1 to 64
 *      4         4  hashes          h, 1 to 65,536
 *      8         8  queryId         identity of the query; 0 for none
 *     16         4  revision        grows with each repetition of the query
 *     20         4  maxLeaseAgeMs   0 for the Manager's default
 *     24         8  groupMask       bit g asks for group g
 *     32      32·n  namespace digests
 *   32+32n  hashBytes·h  block hashes, in the order of the prefix
 * </pre>
 */
public final class LookupRequest {
  /** Only says what is present: reserves nothing, and counts as no lookup. */
  public static final int CANDIDATES = 0;

  /** Leases the blocks before the first missing one. */
  public static final int PREFIX = 1;

  /** Leases every block that is present. */
  public static final int ALL = 2;

  static final int HEADER_BYTES = 32;

  private MemorySegment data;
  private long base;
  private int mode;
  private int hashBytes;
  private int namespaces;
  private int hashes;
  private long groupMask;

  /** Bytes of a request. */
  public static long byteSize(int namespaces, int hashes, int hashBytes) {
    return HEADER_BYTES + (long) namespaces * Protocol.NAMESPACE_BYTES + (long) hashes * hashBytes;
  }

  /**
   * Writes the fixed part; namespaces and hashes follow at {@link #namespaceAt} and {@link
   * #hashesAt}.
   */
  public static void writeHeader(
      MemorySegment into,
      long at,
      int mode,
      int hashBytes,
      int namespaces,
      int hashes,
      long queryId,
      int revision,
      int maxLeaseAgeMs,
      long groupMask) {
    Memory.putByte(into, at, (byte) mode);
    Memory.putByte(into, at + 1, (byte) hashBytes);
    Memory.putShort(into, at + 2, (short) namespaces);
    Memory.putInt(into, at + 4, hashes);
    Memory.putLong(into, at + 8, queryId);
    Memory.putInt(into, at + 16, revision);
    Memory.putInt(into, at + 20, maxLeaseAgeMs);
    Memory.putLong(into, at + 24, groupMask);
  }

  /** Offset, from the start of a request, of a namespace digest. */
  public static long namespaceAt(int index) {
    return HEADER_BYTES + (long) index * Protocol.NAMESPACE_BYTES;
  }

  /** Offset, from the start of a request, of the first hash. */
  public static long hashesAt(int namespaces) {
    return namespaceAt(namespaces);
  }

  /**
   * Wraps and checks a request.
   *
   * @throws ProtocolException naming the field, its value and the rule
   */
  public LookupRequest wrap(MemorySegment data, long base, int length) {
    this.data = data;
    this.base = base;
    Wire.require("lookup: bytes", length, HEADER_BYTES, Protocol.MAX_SPAN_BYTES);
    mode = Memory.getByte(data, base);
    hashBytes = Memory.getByte(data, base + 1);
    namespaces = Short.toUnsignedInt(Memory.getShort(data, base + 2));
    hashes = Memory.getInt(data, base + 4);
    groupMask = Memory.getLong(data, base + 24);
    Wire.require("lookup: mode", mode, CANDIDATES, ALL);
    Wire.require("lookup: hash bytes", hashBytes, Protocol.MIN_HASH_BYTES, Protocol.MAX_HASH_BYTES);
    Wire.require("lookup: namespaces", namespaces, 1, Protocol.MAX_NAMESPACES);
    Wire.require("lookup: hashes", hashes, 1, Protocol.MAX_HASHES);
    Wire.require("lookup: lease age ms", maxLeaseAgeMs(), 0, Integer.MAX_VALUE);
    if (groupMask == 0) {
      throw new ProtocolException(
          Status.INVALID, "lookup: group mask=0, at least one group is asked for");
    }
    long wanted = byteSize(namespaces, hashes, hashBytes);
    if (wanted != length) {
      throw new ProtocolException(
          Status.INVALID, "lookup: bytes=" + length + ", its counts need=" + wanted);
    }
    return this;
  }

  /** One of {@link #CANDIDATES}, {@link #PREFIX}, {@link #ALL}. */
  public int mode() {
    return mode;
  }

  /** Bytes of each hash. */
  public int hashBytes() {
    return hashBytes;
  }

  /** Number of namespaces. */
  public int namespaces() {
    return namespaces;
  }

  /** Number of hashes. */
  public int hashes() {
    return hashes;
  }

  /** Identity of the query; 0 for none. */
  public long queryId() {
    return Memory.getLong(data, base + 8);
  }

  /** Revision of the query. */
  public int revision() {
    return Memory.getInt(data, base + 16);
  }

  /** Wanted maximum age of the leases in milliseconds; 0 for the default. */
  public int maxLeaseAgeMs() {
    return Memory.getInt(data, base + 20);
  }

  /** Bit g is set when group g is asked for. */
  public long groupMask() {
    return groupMask;
  }

  /** Offset of a namespace digest in the wrapped segment. */
  public long namespace(int index) {
    return base + namespaceAt(index);
  }

  /** Offset of a hash in the wrapped segment. */
  public long hash(int index) {
    return base + hashesAt(namespaces) + (long) index * hashBytes;
  }
}
