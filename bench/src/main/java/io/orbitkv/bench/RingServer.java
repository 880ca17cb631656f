package io.orbitkv.bench;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.CommandRing;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.locks.LockSupport;

/**
 * Process that sends every command of a ring back through another one. It sleeps between looks
 * while nothing comes, so that it does not disturb the reference's rounds, and ends when its
 * standard input does.
 */
public final class RingServer {
  private static final long IDLE_NS = 1_000_000;
  private static final long LOOK_NS = 1_000_000;
  private static final int SPINS_BETWEEN_CLOCKS = 1024;

  private RingServer() {}

  /**
   * Serves.
   *
   * @param arguments path of the channel region
   */
  public static void main(String[] arguments) throws IOException {
    MemorySegment region;
    try (FileChannel file =
        FileChannel.open(
            Path.of(arguments[0]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      region =
          file.map(
              FileChannel.MapMode.READ_WRITE, 0, ChannelDescriptor.REGION_BYTES, Arena.global());
    }
    Thread server = new Thread(() -> serve(region), "orbitkv-ring");
    server.setDaemon(true);
    server.start();
    System.in.transferTo(java.io.OutputStream.nullOutputStream());
  }

  private static void serve(MemorySegment region) {
    CommandRing.Consumer in = new CommandRing.Consumer(region, ChannelDescriptor.QUERY_REQUESTS);
    CommandRing.Producer out = new CommandRing.Producer(region, ChannelDescriptor.QUERY_REPLIES);
    Command command = new Command();
    while (true) {
      if (in.hasNext()) {
        answer(in, out, command);
      } else {
        LockSupport.parkNanos(LOOK_NS);
      }
    }
  }

  /** Answers until nothing has come for a while. */
  private static void answer(CommandRing.Consumer in, CommandRing.Producer out, Command command) {
    long last = System.nanoTime();
    int spins = 0;
    while (true) {
      if (in.tryRead(command)) {
        while (!out.tryWrite(command)) {
          Thread.onSpinWait();
        }
        spins = 0;
      } else {
        Thread.onSpinWait();
        if (++spins == 1) {
          last = System.nanoTime();
        } else if (spins % SPINS_BETWEEN_CLOCKS == 0 && System.nanoTime() - last > IDLE_NS) {
          return;
        }
      }
    }
  }
}
