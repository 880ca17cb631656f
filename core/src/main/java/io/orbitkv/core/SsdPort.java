package io.orbitkv.core;

import java.lang.foreign.MemorySegment;

/**
 * What the core asks of the SSD files. Called on the control thread; each method begins something
 * and returns at once. Its end comes later by {@link CacheCore#ssdCompleted} with the request's
 * number, never from within the call.
 *
 * <p>A segment is a range of one file with a table of what is in it; segments are numbered over all
 * files. A page is 4 KiB, counted from the start of the segment; a block begins at a page.
 */
public interface SsdPort {
  /** Bytes of a page. */
  int PAGE_BYTES = 4096;

  /** Bytes of a block in the table of its segment. */
  int TABLE_ENTRY_BYTES = 44;

  /** Done; a read has the right checksum. */
  int OK = 0;

  /** The device reported an error. */
  int IO_ERROR = 1;

  /** Fewer bytes than asked for. */
  int SHORT = 2;

  /** The bytes do not have the checksum that they should have. */
  int DAMAGED = 3;

  /** The device has no room. */
  int NO_SPACE = 4;

  /** Number of results. */
  int RESULTS = 5;

  /** Reads a block into the pool and checks it. */
  void read(int request, int segment, int page, int arena, long offset, int length, int crc);

  /** Checks a block of the pool and writes it. */
  void write(int request, int segment, int page, int arena, long offset, int length, int crc);

  /**
   * Makes a segment empty on disk, so that its pages may be overwritten, and begins its next table
   * in memory.
   *
   * @param generation greater than that of every segment opened before
   */
  void openSegment(int request, int segment, long generation);

  /**
   * Adds a written block to the table in memory of an open segment.
   *
   * @param hashes memory with the hash, 32 bytes with zeros behind it
   * @param hash offset of the hash
   * @param namespace digest of 32 bytes
   * @return false when the table can hold no further namespace
   */
  boolean addEntry(
      int segment,
      MemorySegment hashes,
      long hash,
      MemorySegment namespace,
      int group,
      int hashBytes,
      int page,
      int length,
      int crc);

  /**
   * Writes the table with all entries added so far; at most one such request a segment at a time.
   *
   * @param lifetimeBytes bytes ever written to the tier
   * @param close true when nothing will be added any more
   */
  void writeTable(int request, int segment, long lifetimeBytes, boolean close);

  /**
   * Notes on disk that blocks of a namespace in older segments are void.
   *
   * @param namespace digest of 32 bytes; null for all
   * @param before segments of a smaller generation are meant
   * @param oldest no segment in use has a smaller generation
   */
  void writeClear(int request, MemorySegment namespace, long before, long oldest);
}
