package io.orbitkv.bench;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import io.orbitkv.channel.Opcode;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Ids;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** Measuring end of two raw rings, the other end being a {@link RingServer} in its own process. */
final class RingClient implements AutoCloseable {
  private final Fd file;
  private final Mapping mapping;
  private final Process server;
  private final CommandRing.Producer out;
  private final CommandRing.Consumer in;
  private final Command command = new Command();

  private RingClient(Fd file, Mapping mapping, Process server) {
    this.file = file;
    this.mapping = mapping;
    this.server = server;
    this.out = new CommandRing.Producer(mapping.segment(), ChannelDescriptor.QUERY_REQUESTS);
    this.in = new CommandRing.Consumer(mapping.segment(), ChannelDescriptor.QUERY_REPLIES);
  }

  static RingClient start(BenchContext context) throws IOException {
    Fd file = Memfd.create("orbitkv-ring", ChannelDescriptor.REGION_BYTES, Memfd.PageSize.NORMAL);
    Mapping mapping =
        Mapping.map(file, ChannelDescriptor.REGION_BYTES, Mapping.Access.READ_WRITE, true);
    MemorySegment region = mapping.segment();
    ChannelDescriptor.format(region, 0, 0, 0);
    String path = "/proc/" + Ids.pid() + "/fd/" + file.value();
    List<String> line =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:+UseSerialGC",
            "-cp",
            System.getProperty("java.class.path"),
            RingServer.class.getName(),
            path);
    Process server =
        context.onServerCpu(
            () -> new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT).start());
    return new RingClient(file, mapping, server);
  }

  /** Median of single round trips, in nanoseconds. */
  double p50Ns(int count) throws IOException {
    long[] times = new long[count];
    roundTrips(times);
    Arrays.sort(times);
    return times[count / 2];
  }

  /** Single round trips a second, each timed as in {@link #p50Ns}. */
  double roundTripRate(int count) throws IOException {
    long[] times = new long[count];
    long start = System.nanoTime();
    roundTrips(times);
    return count * 1e9 / (System.nanoTime() - start);
  }

  private void roundTrips(long[] times) throws IOException {
    for (int i = 0; i < times.length; i++) {
      long start = System.nanoTime();
      command.set(Opcode.PING, 0, i, 0, 0, 0);
      while (!out.tryWrite(command)) {
        Thread.onSpinWait();
      }
      for (int spins = 1; !in.tryRead(command); spins++) {
        Thread.onSpinWait();
        checkAlive(spins);
      }
      times[i] = System.nanoTime() - start;
    }
  }

  /** Commands a second with several in flight. */
  double rate(int count, int inFlight) throws IOException {
    long start = System.nanoTime();
    int sent = 0;
    int received = 0;
    int spins = 0;
    while (received < count) {
      boolean moved = false;
      while (sent < count
          && sent - received < inFlight
          && out.tryWrite(command.set(Opcode.PING, 0, sent, 0, 0, 0))) {
        sent++;
        moved = true;
      }
      while (in.tryRead(command)) {
        received++;
        moved = true;
      }
      if (!moved) {
        Thread.onSpinWait();
        checkAlive(++spins);
      }
    }
    return count * 1e9 / (System.nanoTime() - start);
  }

  private void checkAlive(int spins) throws IOException {
    if ((spins & 0xfffff) == 0 && !server.isAlive()) {
      throw new IOException("ring server ended with code=" + server.exitValue());
    }
  }

  @Override
  public void close() {
    try (file;
        mapping) {
      server.destroyForcibly();
    }
  }
}
