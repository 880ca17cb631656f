package io.orbitkv.storage;

import io.orbitkv.core.SsdPort;
import io.orbitkv.linux.Errno;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * One read or write of a file, used again and again. It belongs to the control thread until it is
 * submitted, to an I/O thread until that has handed it back, and then to the control thread again.
 */
class IoRequest {
  /** What an I/O thread does beside moving the bytes. */
  enum Kind {
    /** Reads a block, then compares its checksum. */
    READ_BLOCK,
    /** Compares the checksum of a block, then writes it. */
    WRITE_BLOCK,
    /** Stores the checksum of a table, then writes it. */
    WRITE_TABLE,
    /** Writes as it is. */
    WRITE_RAW
  }

  Kind kind;
  BlockFile file;
  long fileOffset;
  int number;
  int crc;

  /** Bytes of the block itself. */
  int length;

  /** Bytes that move: whole pages. */
  int moved;

  /** The block in the pool, or the bytes to write. */
  MemorySegment memory;

  /** Memory that the device sees; the block itself when that is aligned. */
  MemorySegment device;

  /** A result of {@link SsdPort}. */
  int result;

  /** Next of those that are done. */
  IoRequest next;

  private boolean bounced;
  private MemorySegment bounce;

  /** Prepares a block: one that is no whole number of pages moves through memory of its own. */
  void block(Kind kind, BlockFile file, long offset, MemorySegment block, int crc) {
    this.kind = kind;
    this.file = file;
    this.fileOffset = offset;
    this.memory = block;
    this.length = (int) block.byteSize();
    this.moved = Geometry.roundUp(length);
    this.crc = crc;
    boolean aligned = moved == length && block.address() % SsdPort.PAGE_BYTES == 0;
    this.bounced = !aligned;
    this.device = aligned ? block : bounce(moved);
  }

  /** Prepares bytes that are written as they are: whole pages, aligned. */
  void raw(Kind kind, BlockFile file, long offset, MemorySegment bytes, int length) {
    this.kind = kind;
    this.file = file;
    this.fileOffset = offset;
    this.memory = bytes;
    this.device = bytes;
    this.bounced = false;
    this.length = length;
    this.moved = length;
  }

  @SuppressWarnings("MustBeClosedChecker") // freed when the request is unreachable
  private MemorySegment bounce(int bytes) {
    if (bounce == null || bounce.byteSize() < bytes) {
      bounce = Arena.ofAuto().allocate(bytes, SsdPort.PAGE_BYTES);
    }
    return bounce.asSlice(0, bytes);
  }

  boolean isRead() {
    return kind == Kind.READ_BLOCK;
  }

  /** On an I/O thread, before the bytes move; false when they must not. */
  boolean begin() {
    result = SsdPort.OK;
    if (kind == Kind.WRITE_BLOCK) {
      if (Bytes.crc(memory, 0, length) != crc) {
        result = SsdPort.DAMAGED;
        return false;
      }
      if (bounced) {
        MemorySegment.copy(memory, 0, device, 0, length);
        device.asSlice(length).fill((byte) 0);
      }
    } else if (kind == Kind.WRITE_TABLE) {
      SegmentTable.stamp(memory);
    }
    return true;
  }

  /**
   * On an I/O thread, when the device is done.
   *
   * @param done bytes that moved, or a negative error number
   */
  void end(long done) {
    if (done < 0) {
      result = done == -Errno.ENOSPC ? SsdPort.NO_SPACE : SsdPort.IO_ERROR;
    } else if (done != moved) {
      result = SsdPort.SHORT;
    } else if (kind == Kind.READ_BLOCK) {
      result = Bytes.crc(device, 0, length) == crc ? SsdPort.OK : SsdPort.DAMAGED;
      if (result == SsdPort.OK && bounced) {
        MemorySegment.copy(device, 0, memory, 0, length);
      }
    }
  }
}
