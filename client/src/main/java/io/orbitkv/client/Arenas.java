package io.orbitkv.client;

import io.orbitkv.channel.Status;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Arenas of the pool as one registration has mapped them; their pages become present meanwhile. */
final class Arenas implements AutoCloseable {
  private static final long POPULATE_BYTES = 16 << 20;
  private static final long JOIN_MS = 5000;

  private final List<Mapping> mappings;
  private final Thread populator;
  private volatile boolean closing;

  private Arenas(List<Mapping> mappings) {
    this.mappings = mappings;
    this.populator =
        Thread.ofPlatform().daemon().name("orbitkv-populate").unstarted(this::populate);
  }

  /**
   * Checks and maps what came with a registration, and closes the descriptors.
   *
   * @throws OrbitKvException when a file is not sealed or not as long as announced
   */
  static Arenas map(List<Fd> fds, List<Long> bytes, boolean readOnly) {
    List<Mapping> mappings = new ArrayList<>();
    try {
      if (fds.size() != bytes.size()) {
        throw new OrbitKvException(
            Status.INTERNAL, "arenas=" + bytes.size() + ", descriptors=" + fds.size());
      }
      Mapping.Access access = readOnly ? Mapping.Access.READ_ONLY : Mapping.Access.READ_WRITE;
      for (int i = 0; i < fds.size(); i++) {
        mappings.add(mapSealed(fds.get(i), bytes.get(i), access));
      }
      Arenas arenas = new Arenas(mappings);
      arenas.populator.start();
      return arenas;
    } catch (Throwable t) { // a failed map leaves nothing behind
      mappings.forEach(Mapping::close);
      throw t;
    } finally {
      fds.forEach(Fd::close);
    }
  }

  /** Checks seals and size of a received file, and maps it for this process alone. */
  static Mapping mapSealed(Fd fd, long bytes, Mapping.Access access) {
    try {
      Memfd.checkSealed(fd, bytes);
      Mapping mapping = Mapping.map(fd, bytes, access, false);
      try {
        return mapping.doNotFork();
      } catch (Throwable t) {
        mapping.close();
        throw t;
      }
    } catch (IllegalArgumentException | LinuxException e) {
      throw new OrbitKvException(
          Status.INTERNAL, "shared memory of the Manager: " + e.getMessage(), e);
    }
  }

  private void populate() {
    try {
      for (Mapping mapping : mappings) {
        for (long at = 0; at < mapping.byteSize() && !closing; at += POPULATE_BYTES) {
          mapping.populateRead(at, Math.min(POPULATE_BYTES, mapping.byteSize() - at));
        }
      }
    } catch (LinuxException e) { // a hint only: pages become present when they are used
      System.getLogger(Arenas.class.getName())
          .log(System.Logger.Level.DEBUG, "arena pages are not populated ahead", e);
    }
  }

  MemorySegment[] segments() {
    return mappings.stream().map(Mapping::segment).toArray(MemorySegment[]::new);
  }

  /**
   * Unmaps; to be called when no copy uses the arenas. Idempotent; may be called again after a
   * failure.
   *
   * @throws OrbitKvTimeoutException when pages are still being made present; all stays mapped then
   */
  @Override
  public void close() {
    closing = true;
    if (!Uninterruptibly.join(populator, TimeUnit.MILLISECONDS.toNanos(JOIN_MS))) {
      throw new OrbitKvTimeoutException("unmap: pages are still being populated, ms=" + JOIN_MS);
    }
    mappings.forEach(Mapping::close);
  }
}
