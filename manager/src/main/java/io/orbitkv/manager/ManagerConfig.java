package io.orbitkv.manager;

import io.orbitkv.core.CoreConfig;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;

/**
 * Configuration of a Manager, checked whole when it is made.
 *
 * @param socket path of the Unix socket, at most 107 bytes; its lock is the same path with {@code
 *     .lock}
 * @param poolBytes size of the pool; cut down to whole slabs of each arena
 * @param poolShards arenas that the pool is made of, 1 to 64
 * @param httpAddr address of the HTTP endpoints; port 0 takes any free one
 * @param queryBudgetBytes most bytes that leases pin in all
 * @param instanceBudgetBytes most bytes that leases of one instance pin
 * @param hugePages whether the pool consists of reserved pages of 2 MiB
 * @param allowedUids users that may connect; empty for the Manager's own only
 * @param drainTimeout most time that a stop waits for operations in progress
 * @param enablePrometheus whether {@code /metrics} answers
 * @param ssd the SSD tier; null for none
 */
public record ManagerConfig(
    Path socket,
    long poolBytes,
    int poolShards,
    InetSocketAddress httpAddr,
    long queryBudgetBytes,
    long instanceBudgetBytes,
    boolean hugePages,
    Set<Integer> allowedUids,
    Duration drainTimeout,
    boolean enablePrometheus,
    SsdOptions ssd) {
  /** Most arenas of a pool: one message carries all their descriptors. */
  public static final int MAX_SHARDS = 64;

  /** Port of the HTTP endpoints when none is chosen. */
  public static final int DEFAULT_HTTP_PORT = 9091;

  private static final int MAX_SOCKET_PATH_BYTES = 107;
  private static final Duration MAX_DRAIN = Duration.ofHours(1);

  /**
   * Checks all values.
   *
   * @throws ManagerException naming the value and the rule
   */
  public ManagerConfig {
    allowedUids = Set.copyOf(allowedUids);
    socket = socket.toAbsolutePath().normalize();
    int pathBytes = socket.toString().getBytes(StandardCharsets.UTF_8).length;
    require(
        pathBytes <= MAX_SOCKET_PATH_BYTES,
        "socket path has bytes=" + pathBytes + ", limit=" + MAX_SOCKET_PATH_BYTES + ": " + socket);
    require(
        poolShards >= 1 && poolShards <= MAX_SHARDS,
        "pool shards=" + poolShards + ", allowed=1.." + MAX_SHARDS);
    long least = poolShards * CoreConfig.slabBytesFor(poolBytes);
    require(
        poolBytes >= least,
        "pool bytes=" + poolBytes + ", shards=" + poolShards + ": the least is bytes=" + least);
    require(
        instanceBudgetBytes > 0
            && instanceBudgetBytes <= queryBudgetBytes
            && queryBudgetBytes <= poolBytes,
        "query budget: instance="
            + instanceBudgetBytes
            + ", all="
            + queryBudgetBytes
            + ", pool="
            + poolBytes
            + "; the rule is 0 < instance <= all <= pool");
    require(
        allowedUids.stream().allMatch(uid -> uid >= 0),
        "allowed uids=" + allowedUids + ": below 0");
    require(
        !httpAddr.isUnresolved(), "HTTP address=" + httpAddr.getHostString() + ": unknown host");
    require(
        !drainTimeout.isNegative() && drainTimeout.compareTo(MAX_DRAIN) <= 0,
        "drain timeout=" + drainTimeout + ", allowed=PT0S.." + MAX_DRAIN);
  }

  private static void require(boolean rule, String message) {
    if (!rule) {
      throw new ManagerException(message);
    }
  }

  /** A builder with the defaults. */
  public static Builder builder(Path socket, long poolBytes) {
    return new Builder(socket, poolBytes);
  }

  /** Collects the values of a configuration. */
  public static final class Builder {
    private final Path socket;
    private final long poolBytes;
    private int poolShards = 1;
    private InetSocketAddress httpAddr =
        new InetSocketAddress(InetAddress.getLoopbackAddress(), DEFAULT_HTTP_PORT);
    private long queryBudgetBytes;
    private long instanceBudgetBytes;
    private boolean hugePages;
    private Set<Integer> allowedUids = Set.of();
    private Duration drainTimeout = Duration.ofSeconds(10);
    private boolean enablePrometheus = true;
    private SsdOptions ssd;

    private Builder(Path socket, long poolBytes) {
      this.socket = socket;
      this.poolBytes = poolBytes;
    }

    /** Arenas of the pool; 1 when not called. */
    public Builder poolShards(int value) {
      poolShards = value;
      return this;
    }

    /** Address of the HTTP endpoints; {@link #DEFAULT_HTTP_PORT} of loopback when not called. */
    public Builder httpAddr(InetSocketAddress value) {
      httpAddr = value;
      return this;
    }

    /** Most bytes under leases; 0, or not called: three quarters of the pool. */
    public Builder queryBudgetBytes(long value) {
      queryBudgetBytes = value;
      return this;
    }

    /** Most bytes under leases of one instance; 0, or not called: as many as for all. */
    public Builder instanceBudgetBytes(long value) {
      instanceBudgetBytes = value;
      return this;
    }

    /** Whether the pool consists of reserved huge pages; not when not called. */
    public Builder hugePages(boolean value) {
      hugePages = value;
      return this;
    }

    /** Users that may connect; only the Manager's own when not called. */
    public Builder allowedUids(Set<Integer> value) {
      allowedUids = value;
      return this;
    }

    /** Most time that a stop waits for operations in progress; ten seconds when not called. */
    public Builder drainTimeout(Duration value) {
      drainTimeout = value;
      return this;
    }

    /** Whether {@code /metrics} answers; it does when not called. */
    public Builder enablePrometheus(boolean value) {
      enablePrometheus = value;
      return this;
    }

    /** The SSD tier; none when not called, or null. */
    public Builder ssd(SsdOptions value) {
      ssd = value;
      return this;
    }

    /**
     * The configuration.
     *
     * @throws ManagerException naming the value that breaks a rule, and the rule
     */
    public ManagerConfig build() {
      long query = queryBudgetBytes == 0 ? poolBytes / 4 * 3 : queryBudgetBytes;
      return new ManagerConfig(
          socket,
          poolBytes,
          poolShards,
          httpAddr,
          query,
          instanceBudgetBytes == 0 ? query : instanceBudgetBytes,
          hugePages,
          allowedUids,
          drainTimeout,
          enablePrometheus,
          ssd);
    }
  }
}
