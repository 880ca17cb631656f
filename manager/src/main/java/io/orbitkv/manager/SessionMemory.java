package io.orbitkv.manager;

import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import java.lang.foreign.MemorySegment;

/**
 * Shared memory and wake-ups of one session, as the Manager holds them. The memfds are closed once
 * the engine has them; the mappings last until {@link #close()}. Thread-safe as its parts are.
 */
final class SessionMemory implements AutoCloseable {
  private final int slot;
  private final Fd channelFd;
  private final Fd grantFd;
  private Mapping channel;
  private Mapping grants;
  private GrantTable table;
  private EventFd managerWake;
  private EventFd restoreWake;
  private EventFd publishWake;

  private SessionMemory(int slot, Fd channelFd, Fd grantFd) {
    this.slot = slot;
    this.channelFd = channelFd;
    this.grantFd = grantFd;
  }

  /** Creates and formats the memory of a session; a failure leaves nothing behind. */
  static SessionMemory create(int slot, ManagerIdentity identity) {
    Fd channelFd = memfd("channel", slot, ChannelDescriptor.REGION_BYTES);
    Fd grantFd;
    try {
      grantFd = memfd("grants", slot, GrantTable.REGION_BYTES);
    } catch (Throwable t) {
      channelFd.close();
      throw t;
    }
    SessionMemory memory = new SessionMemory(slot, channelFd, grantFd);
    try {
      memory.open(identity);
      return memory;
    } catch (Throwable t) {
      memory.close();
      throw t;
    }
  }

  private static Fd memfd(String kind, int slot, long byteSize) {
    return Memfd.create("orbitkv-" + kind + "-" + slot, byteSize, Memfd.PageSize.NORMAL);
  }

  private void open(ManagerIdentity identity) {
    channel =
        Mapping.map(channelFd, ChannelDescriptor.REGION_BYTES, Mapping.Access.READ_WRITE, false);
    channel.doNotFork();
    grants = Mapping.map(grantFd, GrantTable.REGION_BYTES, Mapping.Access.READ_WRITE, false);
    grants.doNotFork();
    managerWake = EventFd.create();
    restoreWake = EventFd.create();
    publishWake = EventFd.create();
    ChannelDescriptor.format(channel.segment(), identity.epochHigh(), identity.epochLow(), slot);
    table = GrantTable.format(grants.segment());
  }

  int slot() {
    return slot;
  }

  MemorySegment channel() {
    return channel.segment();
  }

  GrantTable table() {
    return table;
  }

  EventFd managerWake() {
    return managerWake;
  }

  EventFd restoreWake() {
    return restoreWake;
  }

  EventFd publishWake() {
    return publishWake;
  }

  /** The five descriptors of a Welcome, in its order. */
  int[] descriptors() {
    return new int[] {
      channelFd.value(), grantFd.value(), managerWake.fd(), restoreWake.fd(), publishWake.fd()
    };
  }

  /** The engine has its copies of the memfds. */
  void closeMemfds() {
    channelFd.close();
    grantFd.close();
  }

  /** Idempotent. */
  @Override
  public void close() {
    closeMemfds();
    close(managerWake);
    close(restoreWake);
    close(publishWake);
    if (channel != null) {
      channel.close();
    }
    if (grants != null) {
      grants.close();
    }
  }

  private static void close(EventFd wake) {
    if (wake != null) {
      wake.close();
    }
  }
}
