package io.orbitkv.storage;

import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdPort;
import io.orbitkv.core.SsdRecovery;
import io.orbitkv.linux.IoUring;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;

/**
 * The files of the SSD tier: what the core asks for is carried out by I/O threads, and what is done
 * waits until {@link #poll} hands it to the core. Belongs to the control thread from the first
 * request on; {@link #close} is for who opened it, after that thread has ended.
 */
public final class SsdStore implements SsdPort, AutoCloseable {
  private static final int MAX_IDLE = 64;
  private static final int MEGA = 1_000_000;

  private final List<SsdFile> files = new ArrayList<>();
  private final List<BlockIo> backends = new ArrayList<>();
  private final List<MemorySegment> arenas;
  private final Runnable wake;
  private final int[] firstSegment;
  private final int[] pathOfSegment;
  private final SegmentTable[] tables;
  private final Arena memory = Arena.ofShared();
  private final ArrayDeque<IoRequest> idle = new ArrayDeque<>();
  private final ArrayDeque<MemorySegment> idleTables = new ArrayDeque<>();
  private final AtomicReference<IoRequest> done = new AtomicReference<>();
  private final MemorySegment blank = memory.allocate(PAGE_BYTES, PAGE_BYTES);
  private final MemorySegment[] clearPages;
  private final ClearsInFlight clearing = new ClearsInFlight();
  private final String backendNote;
  private Recovered recovered = Recovered.NONE;

  /** How bytes are moved. */
  public enum Backend {
    /** io_uring where it can be had, else positional reads and writes. */
    AUTO,
    /** io_uring or nothing. */
    URING,
    /** Positional reads and writes on a few threads. */
    PREAD
  }

  /** Takes results of requests. */
  @FunctionalInterface
  public interface Completion {
    /** A request is done. */
    void completed(int request, int result);
  }

  /** A clear is one request to the core, and a write to each file. */
  private static final class ClearsInFlight {
    private int request;
    private int left;
    private int result;
    private long sequence;
  }

  private SsdStore(
      List<SsdFile> opened, List<MemorySegment> arenas, BackendChoice backend, Runnable wake) {
    this.files.addAll(opened);
    this.arenas = List.copyOf(arenas);
    this.wake = wake;
    this.backendNote = backend.note();
    this.firstSegment = new int[files.size()];
    int segments = 0;
    for (int i = 0; i < files.size(); i++) {
      firstSegment[i] = segments;
      segments += geometry(i).segments();
    }
    this.pathOfSegment = new int[segments];
    for (int i = 0; i < segments; i++) {
      int path = files.size() - 1;
      while (firstSegment[path] > i) {
        path--;
      }
      pathOfSegment[i] = path;
    }
    this.tables = new SegmentTable[segments];
    this.clearPages = new MemorySegment[files.size()];
    for (int i = 0; i < files.size(); i++) {
      clearPages[i] = memory.allocate(ClearLog.BYTES, PAGE_BYTES);
      backends.add(backend.factory().create("orbitkv-ssd-" + i, this::finished));
    }
  }

  private record BackendChoice(BlockIo.Factory factory, String note) {}

  /**
   * Opens the files, locks them and starts the I/O threads.
   *
   * @param paths directories, each with one file
   * @param capacityBytes bytes of each file
   * @param reset whether files that can not be used give way to new ones
   * @param arenas memory of the pool, by index
   * @param wake called by I/O threads when something is done
   * @throws StorageException saying what can not be; nothing is left open then
   */
  public static SsdStore open(
      List<Path> paths,
      long capacityBytes,
      Backend backend,
      boolean reset,
      List<MemorySegment> arenas,
      Runnable wake) {
    return open(
        paths, capacityBytes, choose(backend), reset, arenas, wake, UnaryOperator.identity());
  }

  /** As the other, with positional I/O through a layer that may fail. */
  static SsdStore openFaulty(
      List<Path> paths,
      long capacityBytes,
      List<MemorySegment> arenas,
      Runnable wake,
      UnaryOperator<BlockFile> layer) {
    BackendChoice threads = new BackendChoice(ThreadIo::new, "");
    return open(paths, capacityBytes, threads, false, arenas, wake, layer);
  }

  private static SsdStore open(
      List<Path> paths,
      long capacityBytes,
      BackendChoice backend,
      boolean reset,
      List<MemorySegment> arenas,
      Runnable wake,
      UnaryOperator<BlockFile> layer) {
    Geometry geometry = Geometry.of(capacityBytes);
    long segments = (long) paths.size() * geometry.segments();
    if (segments > SsdConfig.MAX_SEGMENTS) {
      throw new StorageException(
          "SSD segments of all paths=" + segments + ", limit=" + SsdConfig.MAX_SEGMENTS);
    }
    List<SsdFile> opened = new ArrayList<>();
    try {
      for (Path path : paths) {
        opened.add(SsdFile.open(path.toAbsolutePath().normalize(), geometry, reset));
      }
      opened.forEach(file -> file.wrap(layer));
      return new SsdStore(opened, arenas, backend, wake);
    } catch (Throwable t) { // a failed open leaves nothing behind
      opened.forEach(SsdFile::close);
      throw t;
    }
  }

  private static BackendChoice choose(Backend backend) {
    if (backend == Backend.PREAD) {
      return new BackendChoice(ThreadIo::new, "");
    }
    String why = IoUring.whyUnavailable();
    if (why == null) {
      return new BackendChoice(UringIo::new, "");
    }
    if (backend == Backend.URING) {
      throw new StorageException("SSD backend uring can not be had: " + why);
    }
    return new BackendChoice(ThreadIo::new, "no io_uring: " + why);
  }

  private Geometry geometry(int path) {
    return files.get(path).superblock().geometry();
  }

  /**
   * Configuration of the core's part.
   *
   * @param policy which blocks are written
   * @param dailyWriteBytes most bytes written in a day; 0 for no limit
   * @param readFloor bytes a second below which a file is by-passed; 0 for none
   */
  public SsdConfig coreConfig(SsdConfig.WritePolicy policy, long dailyWriteBytes, long readFloor) {
    Geometry geometry = geometry(0);
    return new SsdConfig(
        pathOfSegment.clone(),
        files.size(),
        geometry.tableBytes() / PAGE_BYTES,
        geometry.segmentBytes() / PAGE_BYTES,
        backends.getFirst().depth(),
        policy,
        dailyWriteBytes,
        SsdConfig.DEFAULT_STALL_NS,
        readFloor,
        files.stream().mapToLong(SsdFile::bytesPerSecond).toArray());
  }

  /** Reads all tables and hands the blocks to the core, before its first command. */
  public Recovered recover(SsdRecovery into) {
    Recovered sum = Recovered.NONE;
    long sequence = newestClear();
    for (int i = 0; i < files.size(); i++) {
      sum = sum.plus(files.get(i).recover(into, firstSegment[i], sequence));
    }
    into.end();
    recovered = sum;
    return sum;
  }

  private long newestClear() {
    return files.stream().mapToLong(file -> file.clears().sequence()).max().orElse(0);
  }

  /** What was found at the start. */
  public Recovered recovered() {
    return recovered;
  }

  /** Bytes of all files. */
  public long capacityBytes() {
    return files.stream().mapToLong(file -> file.superblock().geometry().fileBytes()).sum();
  }

  /** Files that were read more slowly at the start than a floor in bytes a second. */
  public List<Path> slowerThan(long readFloor) {
    return files.stream()
        .filter(file -> file.bytesPerSecond() < readFloor)
        .map(SsdFile::path)
        .toList();
  }

  /** Backend, measured speed and geometry, for a person. */
  public String describe() {
    StringBuilder text = new StringBuilder();
    text.append(backends.getFirst().name());
    if (!backendNote.isEmpty()) {
      text.append(" (").append(backendNote).append(')');
    }
    text.append(", segments of ").append(geometry(0).segmentBytes()).append(" bytes");
    for (SsdFile file : files) {
      text.append(", ").append(file.path()).append(" reads ");
      text.append(file.bytesPerSecond() / MEGA).append(" MB/s");
      if (file.isInMemory()) {
        text.append(" (in memory: tmpfs)");
      }
    }
    return text.toString();
  }

  // ---- requests: control thread ----

  private IoRequest take(int number) {
    IoRequest request = idle.poll();
    if (request == null) {
      request = new IoRequest();
    }
    request.number = number;
    return request;
  }

  private void submit(int path, IoRequest request) {
    if (!backends.get(path).submit(request)) {
      request.result = IO_ERROR;
      finished(request);
    }
  }

  private long at(int segment, int page) {
    int path = pathOfSegment[segment];
    return geometry(path).segmentAt(segment - firstSegment[path]) + (long) page * PAGE_BYTES;
  }

  private void move(
      IoRequest.Kind kind,
      int number,
      int segment,
      int page,
      int arena,
      long offset,
      int length,
      int crc) {
    int path = pathOfSegment[segment];
    IoRequest request = take(number);
    MemorySegment block = arenas.get(arena).asSlice(offset, length);
    request.block(kind, files.get(path).file(), at(segment, page), block, crc);
    submit(path, request);
  }

  @Override
  public void read(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    move(IoRequest.Kind.READ_BLOCK, request, segment, page, arena, offset, length, crc);
  }

  @Override
  public void write(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    move(IoRequest.Kind.WRITE_BLOCK, request, segment, page, arena, offset, length, crc);
  }

  @Override
  public void openSegment(int request, int segment, long generation) {
    int path = pathOfSegment[segment];
    if (tables[segment] == null) {
      MemorySegment bytes = idleTables.poll();
      tables[segment] =
          new SegmentTable(
              bytes != null ? bytes : memory.allocate(geometry(path).tableBytes(), PAGE_BYTES));
    }
    tables[segment].begin(files.get(path).superblock(), segment - firstSegment[path], generation);
    IoRequest write = take(request);
    write.raw(IoRequest.Kind.WRITE_RAW, files.get(path).file(), at(segment, 0), blank, PAGE_BYTES);
    submit(path, write);
  }

  @Override
  public boolean addEntry(
      int segment,
      MemorySegment hashes,
      long hash,
      MemorySegment namespace,
      int group,
      int hashBytes,
      int page,
      int length,
      int crc) {
    return tables[segment].add(hashes, hash, namespace, group, hashBytes, length, page, crc);
  }

  @Override
  public void writeTable(int request, int segment, long lifetimeBytes, boolean close) {
    int path = pathOfSegment[segment];
    SegmentTable table = tables[segment];
    int bytes = table.seal(lifetimeBytes, close);
    IoRequest write = take(request);
    write.raw(
        IoRequest.Kind.WRITE_TABLE, files.get(path).file(), at(segment, 0), table.bytes(), bytes);
    write.crc = close ? segment + 1 : 0; // its table is free once this is done
    submit(path, write);
  }

  @Override
  public void writeClear(int request, MemorySegment namespace, long before, long oldest) {
    clearing.request = request;
    clearing.left = files.size();
    clearing.result = OK;
    clearing.sequence = newestClear() + 1;
    for (int i = 0; i < files.size(); i++) {
      SsdFile file = files.get(i);
      file.clears().add(namespace, before, oldest);
      long at = file.clears().write(clearPages[i], file.superblock(), clearing.sequence);
      IoRequest write = take(request);
      write.raw(IoRequest.Kind.WRITE_RAW, file.file(), at, clearPages[i], ClearLog.BYTES);
      write.crc = i; // whose log it is
      submit(i, write);
    }
  }

  // ---- completions ----

  /** On an I/O thread. */
  private void finished(IoRequest request) {
    IoRequest head;
    do {
      head = done.getPlain();
      request.next = head;
    } while (!done.compareAndSet(head, request)); // SYNC: done
    if (head == null) {
      wake.run();
    }
  }

  /** True when something is done. */
  public boolean hasDone() {
    return done.get() != null;
  }

  /**
   * Hands what is done to the core, in the order in which it was; returns how much that was.
   *
   * @throws RuntimeException the first that {@code into} threw; all was handed over nevertheless
   */
  public int poll(Completion into) {
    IoRequest newest = done.getAndSet(null); // SYNC: done
    IoRequest first = null;
    while (newest != null) {
      IoRequest older = newest.next;
      newest.next = first;
      first = newest;
      newest = older;
    }
    int count = 0;
    RuntimeException fault = null;
    while (first != null) {
      IoRequest request = first;
      first = request.next;
      request.next = null;
      int number = request.number;
      int result = request.result;
      int path = request.crc; // of a clear
      release(request);
      try {
        handOver(into, number, result, path);
      } catch (RuntimeException e) { // the others must reach the core all the same
        fault = fault == null ? e : fault;
      }
      count++;
    }
    if (fault != null) {
      throw fault;
    }
    return count;
  }

  private void handOver(Completion into, int number, int result, int path) {
    if (clearing.left == 0 || number != clearing.request) {
      into.completed(number, result);
      return;
    }
    if (result == OK) {
      files.get(path).clears().written(clearing.sequence);
    }
    clearing.result = Math.max(clearing.result, result);
    if (--clearing.left == 0) {
      into.completed(number, clearing.result);
    }
  }

  private void release(IoRequest request) {
    if (request.kind == IoRequest.Kind.WRITE_TABLE && request.crc != 0) {
      int segment = request.crc - 1;
      idleTables.add(tables[segment].bytes());
      tables[segment] = null;
    }
    request.memory = null;
    request.device = null;
    if (idle.size() < MAX_IDLE) {
      idle.add(request);
    }
  }

  /**
   * Ends the I/O threads and closes the files.
   *
   * @throws IllegalStateException when requests do not return: the memory of the pool must stay
   */
  @Override
  public void close() {
    IllegalStateException stuck = null;
    for (BlockIo backend : backends) {
      try {
        backend.close();
      } catch (IllegalStateException e) {
        stuck = e;
      }
    }
    files.forEach(SsdFile::close);
    if (stuck != null) {
      throw stuck;
    }
    memory.close();
  }
}
