package io.orbitkv.bench;

import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.ClientConfig;
import io.orbitkv.client.Fence;
import io.orbitkv.client.GroupSpec;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.OrbitKvClient;
import io.orbitkv.client.OrbitKvException;
import io.orbitkv.client.PublishItem;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.Registration;
import io.orbitkv.client.RegistrationSpec;
import io.orbitkv.client.RestoreItem;
import io.orbitkv.client.RestoreResult;
import io.orbitkv.linux.Mapping;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * The smallest engine: one layer of pages in host memory, one behind the other, and one session.
 * Belongs to one thread.
 */
public final class Engine implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  private final Mapping memory;
  private final OrbitKvClient client;
  private final Registration registration;
  private final byte[] namespace;
  private final int pageBytes;
  private final int pages;
  private long lastQuery;
  private long lookupsWaited;

  private Engine(
      Mapping memory, OrbitKvClient client, Registration registration, int pageBytes, int pages) {
    this.memory = memory;
    this.client = client;
    this.registration = registration;
    this.namespace = registration.namespace();
    this.pageBytes = pageBytes;
    this.pages = pages;
  }

  /**
   * Connects and registers fresh, touched memory.
   *
   * @throws OrbitKvException when the Manager refuses or is absent
   */
  public static Engine open(Path socket, int pageBytes, int pages) {
    return open(ClientConfig.defaults().withSocket(socket), pageBytes, pages);
  }

  /** As {@link #open(Path, int, int)}, with more chosen. */
  public static Engine open(ClientConfig config, int pageBytes, int pages) {
    Mapping memory = Mapping.anonymous((long) pageBytes * pages, true);
    OrbitKvClient client = null;
    try {
      memory.populateWrite(0, memory.byteSize());
      client = OrbitKvClient.connect(config);
      GroupSpec group = GroupSpec.contiguous(memory.segment(), pageBytes, pages);
      Registration registration =
          client.register(new RegistrationSpec(state(), List.of(group), false));
      return new Engine(memory, client, registration, pageBytes, pages);
    } catch (RuntimeException e) {
      try (memory) {
        if (client != null) {
          client.close();
        }
      }
      throw e;
    }
  }

  private static StateFields state() {
    return StateFields.newBuilder()
        .setModel("replay")
        .setComputeDtype("bytes")
        .setKvDtype("bytes")
        .setLayout("layer-page")
        .setBlockTokens(512)
        .setTpSize(1)
        .setPpSize(1)
        .setDcpSize(1)
        .setHashScheme("splitmix64")
        .setHashBytes(32)
        .setEngine("orbitkv-bench")
        .build();
  }

  /** The session. */
  public OrbitKvClient client() {
    return client;
  }

  /** Digest of the namespace. */
  public byte[] namespace() {
    return namespace.clone();
  }

  /** Number of pages. */
  public int pages() {
    return pages;
  }

  /** Bytes of a page. */
  public MemorySegment page(int index) {
    return memory.segment().asSlice((long) index * pageBytes, pageBytes);
  }

  /** Looks a prefix up and leases what is held of it, waiting for what is on SSD. */
  public LookupResult lookup(BlockHashes hashes) {
    LookupResult found = client.lookup(LookupRequestSpec.prefix(namespace, hashes));
    if (found.outcome() != LookupResult.Outcome.LOADING) {
      return found;
    }
    lookupsWaited++;
    LookupRequestSpec query =
        new LookupRequestSpec(
            List.of(namespace), 1, hashes, LookupRequestSpec.Mode.PREFIX, ++lastQuery, 0, 0);
    return client.lookup(query, TIMEOUT);
  }

  /** Lookups that had to wait for a slower tier. */
  public long lookupsWaited() {
    return lookupsWaited;
  }

  /** Restores a lease into the first pages. */
  public RestoreResult restore(Lease lease, int blocks) {
    return restore(lease, firstPages(blocks));
  }

  /** Restores a lease. */
  public RestoreResult restore(Lease lease, int[] targets) {
    return inTime(
        "restore",
        registration.restore(List.of(RestoreItem.of(lease, targets)), Fence.done()).await(TIMEOUT));
  }

  /** Publishes the first pages. */
  public PublishResult publish(BlockHashes hashes, int position, byte[] parent) {
    return publish(hashes, position, parent, firstPages(hashes.size()));
  }

  /** Publishes pages. */
  public PublishResult publish(BlockHashes hashes, int position, byte[] parent, int[] sources) {
    PublishItem item = new PublishItem(0, position, parent, hashes, sources);
    return inTime("publish", registration.publish(List.of(item), Fence.done()).await(TIMEOUT));
  }

  private static int[] firstPages(int count) {
    int[] result = new int[count];
    for (int i = 0; i < count; i++) {
      result[i] = i;
    }
    return result;
  }

  private static <T> T inTime(String what, T result) {
    if (result == null) {
      throw new OrbitKvException(Status.INTERNAL, what + ": no result within " + TIMEOUT);
    }
    return result;
  }

  /** Ends the session; its memory is unmapped last. */
  @Override
  public void close() {
    try (memory) {
      try (client) {
        registration.close();
      }
    }
  }
}
