package io.orbitkv.bench.simulator;

import io.orbitkv.core.CacheCore;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdPort;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * SSD files whose requests complete when, and in the order that, the run says; fail; take long; or
 * do not return. A read writes the pool, and a write reads it, only when it completes, so memory
 * that was used again meanwhile shows.
 */
final class SimulatedDisk implements SsdPort {
  private static final int[] PATH_OF_SEGMENT = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  private static final int PATHS = 2;
  private static final int FIRST_PAGE = 1;
  private static final int PAGES = 33;
  private static final int DEPTH = 8;
  private static final long STALL_NS = 2_000_000_000L;
  private static final int[] FAILED_READ = {IO_ERROR, SHORT, DAMAGED};
  private static final int[] FAILED_WRITE = {IO_ERROR, NO_SPACE, SHORT};

  private enum What {
    READ,
    WRITE,
    OTHER
  }

  private static final class Request {
    final int number;
    final What what;
    final int place;
    final int arena;
    final long offset;
    final int length;
    final int crc;
    long notBeforeNs;

    Request(int number, What what, int place, int arena, long offset, int length, int crc) {
      this.number = number;
      this.what = what;
      this.place = place;
      this.arena = arena;
      this.offset = offset;
      this.length = length;
      this.crc = crc;
    }
  }

  private final World world;
  private final List<Request> requests = new ArrayList<>();
  private final byte[][] disk = new byte[PATH_OF_SEGMENT.length * PAGES][];
  private final CRC32C sum = new CRC32C();
  private final byte[] buffer = new byte[PAGE_BYTES];
  private CacheCore core;
  private MemorySegment[] arenas;

  SimulatedDisk(World world) {
    this.world = world;
  }

  SsdConfig config() {
    return new SsdConfig(
        PATH_OF_SEGMENT, PATHS, FIRST_PAGE, PAGES, DEPTH, SsdConfig.WritePolicy.ALL, 0, STALL_NS);
  }

  void attach(CacheCore to, MemorySegment[] pool) {
    core = to;
    arenas = pool;
  }

  // ---- port ----

  private static int place(int segment, int page) {
    return segment * PAGES + page;
  }

  @Override
  public void read(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    requests.add(new Request(request, What.READ, place(segment, page), arena, offset, length, crc));
  }

  @Override
  public void write(
      int request, int segment, int page, int arena, long offset, int length, int crc) {
    requests.add(
        new Request(request, What.WRITE, place(segment, page), arena, offset, length, crc));
  }

  @Override
  public void openSegment(int request, int segment, long generation) {
    add(request);
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
    return true;
  }

  @Override
  public void writeTable(int request, int segment, long lifetimeBytes, boolean close) {
    add(request);
  }

  @Override
  public void writeClear(int request, MemorySegment namespace, long before, long oldest) {
    add(request);
  }

  private void add(int request) {
    requests.add(new Request(request, What.OTHER, 0, 0, 0, 0, 0));
  }

  // ---- what happens ----

  /** Completes one request; false when none may complete now. */
  boolean complete(long bits) {
    int size = requests.size();
    for (int i = 0; i < size; i++) {
      int index = (int) ((bits + i) % size);
      if (requests.get(index).notBeforeNs <= world.now) {
        complete(index, OK);
        return true;
      }
    }
    return false;
  }

  /** Completes all that may complete now. */
  void completeAll() {
    boolean completed = true;
    while (completed) {
      completed = complete(0);
    }
  }

  /** Fails one request; false when there is none. */
  boolean fail(long bits) {
    if (requests.isEmpty()) {
      return false;
    }
    int index = (int) (bits % requests.size());
    int which = (int) (bits >>> 32 & 0xff) % FAILED_READ.length;
    int result =
        switch (requests.get(index).what) {
          case READ -> FAILED_READ[which];
          case WRITE -> FAILED_WRITE[which];
          case OTHER -> IO_ERROR;
        };
    complete(index, result);
    return true;
  }

  /** Keeps one request until a time; false when there is none. */
  boolean delay(long bits, long untilNs) {
    if (requests.isEmpty()) {
      return false;
    }
    Request request = requests.get((int) (bits % requests.size()));
    request.notBeforeNs = untilNs;
    world.note(
        () -> "request 0x" + Integer.toHexString(request.number) + " waits: " + request.what);
    return true;
  }

  /** What did not return does so now. */
  void release() {
    requests.forEach(request -> request.notBeforeNs = 0);
  }

  boolean isIdle() {
    return requests.isEmpty();
  }

  private void complete(int index, int result) {
    Request request = requests.get(index);
    requests.set(index, requests.getLast());
    requests.removeLast();
    int reported = effect(request, result);
    world.counts.blocksMoved += request.what == What.OTHER ? 0 : 1;
    world.note(() ->
        "the device completes 0x%x, %s: %d".formatted(request.number, request.what, reported));
    world.beginCall();
    core.ssdCompleted(request.number, reported, world.now);
    world.endCall();
    world.checkSources();
  }

  private int effect(Request request, int result) {
    return switch (request.what) {
      case READ -> read(request, result);
      case WRITE -> write(request, result);
      case OTHER -> result;
    };
  }

  /** A read that fails leaves nonsense. */
  private int read(Request request, int result) {
    byte[] bytes = disk[request.place];
    boolean good = result == OK && bytes != null && bytes.length == request.length;
    if (!good) {
      arenas[request.arena].asSlice(request.offset, request.length).fill((byte) 0xee);
      return result == OK ? DAMAGED : result;
    }
    MemorySegment.copy(
        bytes, 0, arenas[request.arena], ValueLayout.JAVA_BYTE, request.offset, request.length);
    return sum(bytes, request.length) == request.crc ? OK : DAMAGED;
  }

  private int write(Request request, int result) {
    MemorySegment.copy(
        arenas[request.arena], ValueLayout.JAVA_BYTE, request.offset, buffer, 0, request.length);
    Violation.require(
        sum(buffer, request.length) == request.crc,
        Rule.DEVICE,
        () ->
            "memory of a write has changed: arena=" + request.arena + ", offset=" + request.offset);
    disk[request.place] = result == OK ? Arrays.copyOf(buffer, request.length) : null;
    return result;
  }

  private int sum(byte[] bytes, int length) {
    sum.reset();
    sum.update(bytes, 0, length);
    return (int) sum.getValue();
  }
}
