package io.orbitkv.storage;

import io.orbitkv.core.SsdRecovery;
import io.orbitkv.linux.DirectFile;
import io.orbitkv.linux.Errno;
import io.orbitkv.linux.LinuxException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.SecureRandom;

/** One locked file of the tier, in a directory of the operator's choice. */
final class SsdFile implements AutoCloseable {
  /** Name of the file in its directory. */
  static final String NAME = "orbitkv.ssd";

  private static final int MODE = 0600;
  private static final int PAGE = DirectFile.ALIGNMENT;
  private static final int FIRST_READ = 1 << 16;
  private static final int PROOF_READS = 3;
  private static final double NS = 1e9;

  private final Path path;
  private final DirectFile direct;
  private final boolean fresh;
  private final Superblock superblock;
  private final ClearLog clears = new ClearLog();
  private long bytesPerSecond;
  private long nextGeneration;
  private boolean lags;
  private BlockFile file;

  private SsdFile(Path path, DirectFile direct, Superblock superblock, boolean fresh) {
    this.path = path;
    this.direct = direct;
    this.superblock = superblock;
    this.fresh = fresh;
    this.file = BlockFile.of(direct);
  }

  /**
   * Opens or makes the file of a directory, proves that it can be written and read back, and reads
   * what was cleared.
   *
   * @param reset whether a file that can not be used as it is gives way to a new one
   * @throws StorageException saying what is wrong with the file
   */
  static SsdFile open(Path directory, Geometry geometry, boolean reset) {
    Path path = directory.resolve(NAME);
    DirectFile direct = null;
    try {
      Files.createDirectories(directory);
      direct = DirectFile.open(path, MODE);
      if (!direct.tryLock()) {
        throw new StorageException(
            "SSD file is in use by another Manager, or its directory is named twice: path=" + path);
      }
      DirectFile locked = direct;
      return Bounded.call(
          path,
          Bounded.BOUND_SECONDS,
          () -> {
            SsdFile file = open(path, locked, geometry, reset);
            file.proveAndLoad();
            return file;
          });
    } catch (Bounded.NoAnswerException e) {
      throw e; // the file stays open: it is still being read or written
    } catch (LinuxException e) {
      close(direct);
      throw new StorageException(explain(path, e), e);
    } catch (FileSystemException e) {
      close(direct);
      throw new StorageException(
          "SSD directory can not be made: path=" + directory + ": " + explain(e), e);
    } catch (IOException e) {
      close(direct);
      throw new StorageException("SSD file can not be used: path=" + path + ": " + e, e);
    } catch (Throwable t) { // a failed open leaves nothing behind
      close(direct);
      throw t;
    }
  }

  private static void close(DirectFile direct) {
    if (direct != null) {
      direct.close();
    }
  }

  private static String explain(FileSystemException e) {
    return switch (e) {
      case FileAlreadyExistsException _ -> e.getFile() + " is no directory";
      case AccessDeniedException _ -> e.getFile() + " may not be written";
      case NoSuchFileException _ -> e.getFile() + " can not be made there";
      default -> e.getMessage();
    };
  }

  private static String explain(Path path, LinuxException e) {
    String hint =
        e.call().equals("open") && e.errno() == Errno.EINVAL
            ? "; the file system has no direct I/O, which the SSD tier needs"
            : "";
    return "SSD file can not be used: path=" + path + ": " + e.getMessage() + hint;
  }

  private static SsdFile open(Path path, DirectFile direct, Geometry geometry, boolean reset)
      throws IOException {
    Superblock found = direct.byteSize() == 0 ? null : readSuperblock(path, direct, reset);
    if (found != null && !found.geometry().equals(geometry)) {
      refuse(
          reset,
          "SSD file has another capacity: path="
              + path
              + ", its bytes="
              + found.geometry().fileBytes()
              + ", asked for bytes="
              + geometry.fileBytes());
      found = null;
    }
    if (found != null) {
      if (direct.byteSize() < geometry.fileBytes()) { // what was cut off reads as nothing
        direct.allocate(geometry.fileBytes());
      }
      return new SsdFile(path, direct, found, false);
    }
    return new SsdFile(path, direct, format(path, direct, geometry), true);
  }

  private static void refuse(boolean reset, String message) {
    if (!reset) {
      throw new StorageException(message + "; --ssd-cache-reset makes it empty");
    }
  }

  /** The superblock, or null where a new one is to be written. */
  private static Superblock readSuperblock(Path path, DirectFile direct, boolean reset) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pages = arena.allocate(2L * PAGE, PAGE);
      direct.read(0, pages, 2L * PAGE);
      MemorySegment first = pages.asSlice(0, PAGE);
      MemorySegment second = pages.asSlice(PAGE, PAGE);
      Superblock.Kind kind = Superblock.kind(first);
      if (kind == Superblock.Kind.VALID) {
        return Superblock.read(first);
      }
      if (Superblock.kind(second) == Superblock.Kind.VALID) { // one copy is damaged
        Superblock.read(second).write(first);
        direct.write(0, first, PAGE);
        return Superblock.read(second);
      }
      switch (kind) {
        case OTHER_VERSION ->
            refuse(
                reset,
                "SSD file has another format: path="
                    + path
                    + ", its version="
                    + Superblock.version(first)
                    + (Superblock.version(first) > Superblock.VERSION ? " (newer)" : " (older)")
                    + ", this Manager's version="
                    + Superblock.VERSION);
        case FOREIGN -> refuse(reset, "file is no SSD file of OrbitKV: path=" + path);
        case DAMAGED -> refuse(reset, "SSD file has a damaged superblock: path=" + path);
        case BLANK, VALID -> {} // a file that was never finished is made anew
      }
      return null;
    }
  }

  private static Superblock format(Path path, DirectFile direct, Geometry geometry)
      throws IOException {
    direct.truncate(0);
    long free = Files.getFileStore(path).getUsableSpace();
    if (free < geometry.fileBytes()) {
      Files.delete(path);
      throw new StorageException(
          "SSD capacity does not fit: path="
              + path
              + ", wanted bytes="
              + geometry.fileBytes()
              + ", free bytes="
              + free);
    }
    try {
      direct.allocate(geometry.fileBytes());
    } catch (LinuxException e) {
      direct.truncate(0);
      Files.delete(path);
      throw e;
    }
    SecureRandom random = new SecureRandom();
    Superblock made = new Superblock(random.nextLong(), random.nextLong(), geometry);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment page = arena.allocate(PAGE, PAGE);
      made.write(page);
      requireWritten(path, direct.write(Geometry.SECOND_SUPERBLOCK, page, PAGE), PAGE);
      requireWritten(path, direct.write(0, page, PAGE), PAGE);
    }
    return made;
  }

  private static void requireWritten(Path path, long done, long wanted) {
    if (done != wanted) {
      throw new StorageException(
          "SSD file can not be written: path="
              + path
              + (done < 0 ? ", errno=" + Errno.name((int) -done) : ", bytes=" + done));
    }
  }

  /** Writes and reads back a pattern, timing the read, and loads the clear log. */
  private void proveAndLoad() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(Geometry.SCRATCH_BYTES, PAGE);
      MemorySegment in = arena.allocate(Geometry.SCRATCH_BYTES, PAGE);
      long seed = superblock.identityLow() ^ System.nanoTime();
      for (long i = 0; i < Geometry.SCRATCH_BYTES; i += Long.BYTES) {
        Bytes.putLong(out, i, seed += 0x9e37_79b9_7f4a_7c15L);
      }
      requireWritten(path, direct.write(Geometry.SCRATCH, out, out.byteSize()), out.byteSize());
      long done = 0;
      for (int i = 0; i < PROOF_READS; i++) {
        long start = System.nanoTime();
        done = direct.read(Geometry.SCRATCH, in, in.byteSize());
        long rate = (long) (done * NS / Math.max(1, System.nanoTime() - start));
        bytesPerSecond = Math.max(bytesPerSecond, rate);
      }
      if (done != in.byteSize() || in.mismatch(out) >= 0) {
        throw new StorageException(
            "SSD file does not read back what was written: path=" + path + ", bytes=" + done);
      }
      MemorySegment logs = arena.allocate(2L * ClearLog.BYTES, PAGE);
      direct.read(Geometry.CLEAR_LOG, logs, logs.byteSize());
      clears.read(
          logs.asSlice(0, ClearLog.BYTES),
          logs.asSlice(ClearLog.BYTES, ClearLog.BYTES),
          superblock);
    }
  }

  /**
   * Reads all tables and hands on what they name. What is in a file that was not there when
   * something was cleared is void.
   *
   * @param firstNumber number in the tier of the first segment
   * @param sequence the greatest of the clear logs of all files
   */
  Recovered recover(SsdRecovery into, int firstNumber, long sequence) {
    Recovered sum = new Recovered(0, 0, 0, 0, 0, 0, 0, fresh ? 1 : 0);
    lags = clears.sequence() < sequence;
    nextGeneration = clears.nextGeneration();
    if (!fresh) {
      try (TableReader reader = new TableReader(this)) {
        for (int i = 0; i < superblock.geometry().segments(); i++) {
          sum = sum.plus(recover(reader.next(), i, into, firstNumber + i));
        }
      }
    }
    into.nextGeneration(nextGeneration);
    if (lags) {
      clears.add(null, nextGeneration, nextGeneration);
      writeClears(sequence);
    }
    return sum;
  }

  private void writeClears(long sequence) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment page = arena.allocate(ClearLog.BYTES, PAGE);
      long at = clears.write(page, superblock, sequence);
      requireWritten(path, file.write(at, page, ClearLog.BYTES), ClearLog.BYTES);
      clears.written(sequence);
    }
  }

  private Recovered recover(MemorySegment table, int segment, SsdRecovery into, int number) {
    if (table == null) {
      return new Recovered(0, 0, 1, 0, 0, 0, 0, 0);
    }
    return switch (SegmentTable.kind(table, superblock, segment)) {
      case BLANK -> Recovered.NONE;
      case DAMAGED -> new Recovered(0, 0, 1, 0, 0, 0, 0, 0);
      case FOREIGN -> new Recovered(0, 0, 0, 1, 0, 0, 0, 0);
      case EXCHANGED -> new Recovered(0, 0, 0, 0, 1, 0, 0, 0);
      case VALID -> recoverBlocks(table, into, number);
    };
  }

  private Recovered recoverBlocks(MemorySegment table, SsdRecovery into, int number) {
    long generation = SegmentTable.generation(table);
    nextGeneration = Math.max(nextGeneration, generation + 1);
    into.segment(number, generation, SegmentTable.lifetimeBytes(table));
    int spaceCount = SegmentTable.spaces(table);
    int[] spaces = new int[spaceCount];
    boolean[] cleared = new boolean[spaceCount];
    for (int i = 0; i < spaceCount; i++) {
      long at = SegmentTable.spaceAt(i);
      cleared[i] = lags || clears.isCleared(table, at, generation);
      spaces[i] =
          cleared[i]
              ? -1
              : into.space(
                  table,
                  at,
                  SegmentTable.group(table, i),
                  SegmentTable.hashBytes(table, i),
                  SegmentTable.blockBytes(table, i));
    }
    long blocks = 0;
    long voided = 0;
    long unusable = 0;
    for (int i = 0; i < SegmentTable.entries(table); i++) {
      int space = SegmentTable.space(table, i);
      int page = SegmentTable.page(table, i);
      int crc = SegmentTable.crc(table, i);
      if (cleared[space]) {
        voided++;
      } else if (spaces[space] >= 0
          && into.block(spaces[space], table, SegmentTable.entryAt(i), page, crc)) {
        blocks++;
      } else {
        unusable++;
      }
    }
    return new Recovered(blocks, 1, 0, 0, 0, voided, unusable, 0);
  }

  /**
   * Reads the table of one segment into memory as long as the longest table.
   *
   * @return its bytes; null when the device does not give them
   */
  MemorySegment readTable(int segment, MemorySegment into) {
    long at = superblock.geometry().segmentAt(segment);
    int most = superblock.geometry().tableBytes();
    int first = Math.min(FIRST_READ, most);
    if (direct.read(at, into, first) != first) {
      return null;
    }
    int bytes = SegmentTable.tableBytes(into, most);
    if (bytes <= first) { // −1 as well: what it is will be found out
      return into.asSlice(0, first);
    }
    long rest = bytes - (long) first;
    return direct.read(at + first, into.asSlice(first), rest) == rest
        ? into.asSlice(0, bytes)
        : null;
  }

  Path path() {
    return path;
  }

  Superblock superblock() {
    return superblock;
  }

  ClearLog clears() {
    return clears;
  }

  BlockFile file() {
    return file;
  }

  /** Puts a layer between the tier and the file. */
  void wrap(java.util.function.UnaryOperator<BlockFile> layer) {
    file = layer.apply(file);
  }

  /** Speed of the fastest read at the start. */
  long bytesPerSecond() {
    return bytesPerSecond;
  }

  /** True when the file takes memory and no disk. */
  boolean isInMemory() {
    try {
      String type = Files.getFileStore(path).type();
      return type.equals("tmpfs") || type.equals("ramfs");
    } catch (IOException e) {
      return false; // only said to people
    }
  }

  /** Idempotent. */
  @Override
  public void close() {
    direct.close();
  }
}
