package io.orbitkv.manager;

import io.orbitkv.channel.Protocol;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreStats;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.core.SsdStats;
import io.orbitkv.linux.Affinity;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Ids;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.MemoryFacts;
import io.orbitkv.linux.UnixConnection;
import io.orbitkv.linux.UnixListener;
import io.orbitkv.storage.SsdStore;
import io.orbitkv.storage.StorageException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One Cache Manager: pool, control thread, Unix socket and HTTP endpoints. Thread-safe. It serves
 * from {@link #start} on; registrations are taken once the pool is present, see {@link
 * #awaitReady}.
 */
public final class Manager implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Manager.class);
  private static final long MARGIN_BYTES = 128L << 20;
  private static final int MARGIN_SHARE = 20;
  private static final int PROBE_MS = 1_000;
  private static final double NS_PER_SECOND = 1e9;

  private final ManagerConfig config;
  private final ManagerIdentity identity;
  private final PeerRule peerRule;
  private final EdgeCounters counters = new EdgeCounters();
  private final MetadataMappings metadata = new MetadataMappings();
  private final long startedNs = System.nanoTime();
  private final long slabBytes;
  private final CountDownLatch terminated = new CountDownLatch(1);
  private final int cpus = Affinity.allowedCpus().length;
  private MemoryFacts memoryFacts;
  private SocketClaim claim;
  private PoolArenas pool;
  private HttpEndpoints http;
  private volatile ControlAgent control;
  private SsdStore ssd; // null without one
  private UnixListener listener;
  private BootstrapServer server;
  private final RegisteredStates states = new RegisteredStates();
  private StatusSource status;
  private boolean peerPidFd;
  private volatile boolean stopping;
  private boolean stopped;
  private boolean drained;

  private Manager(ManagerConfig config) {
    this.config = config;
    this.identity = ManagerIdentity.create(Ids.pid());
    this.peerRule = new PeerRule(Ids.uid(), config.allowedUids());
    this.slabBytes = CoreConfig.slabBytesFor(config.poolBytes());
  }

  /**
   * Starts a Manager. Returns while the pool is still being touched.
   *
   * @throws ManagerException saying what can not be; nothing is left then
   */
  public static Manager start(ManagerConfig config) {
    Manager manager = new Manager(config);
    try {
      manager.open();
      LOG.info(
          "Manager started: pid={}, epoch={}",
          manager.identity.pid(),
          manager.identity.epochText());
      return manager;
    } catch (LinuxException | StorageException e) {
      manager.release();
      throw new ManagerException("Manager can not start: " + e.getMessage(), e);
    } catch (Throwable t) { // a failed start leaves nothing behind
      manager.release();
      throw t;
    }
  }

  private void open() {
    checkMemory();
    claim = SocketClaim.take(config.socket(), peerRule.directoryMode());
    long[] arenas = CoreConfig.arenas(config.poolBytes(), config.poolShards());
    pool = PoolArenas.create(arenas, config.hugePages(), cpus);
    var _ = pool.ready().whenComplete((_, failure) -> logReady(failure));
    http = HttpEndpoints.bind(config.httpAddr());
    openSsd();
    SsdConfig ssdConfig = ssd == null ? null : ssdConfig(config.ssd());
    control = new ControlAgent(coreConfig(arenas), identity.epochLow(), counters, ssdConfig, ssd);
    if (ssd != null) {
      LOG.info("SSD tier: {}", control.recover().summary());
    }
    control.start();
    status = new StatusSource(Waits.answer(control.stats()), control::stats, this::facts, states);
    http.serve(status, counters, config.enablePrometheus());
    listener = UnixListener.bind(config.socket(), peerRule.socketMode());
    peerPidFd = probePeerPidFd();
    server = new BootstrapServer(this, listener);
    server.start();
  }

  private SsdConfig ssdConfig(SsdOptions options) {
    for (Path slow : ssd.slowerThan(options.readFloor())) {
      LOG.warn(
          "SSD file is by-passed: path={}, it reads below the floor bytes a second={}",
          slow,
          options.readFloor());
    }
    return ssd.coreConfig(options.policy(), options.dailyWriteBytes(), options.readFloor());
  }

  private void openSsd() {
    SsdOptions options = config.ssd();
    if (options != null) {
      ssd =
          SsdStore.open(
              options.paths(),
              options.capacityBytes(),
              options.backend(),
              options.reset(),
              pool.segments(),
              this::wakeControl);
    }
  }

  private void wakeControl() {
    ControlAgent agent = control;
    if (agent != null) {
      agent.wakeUp();
    }
  }

  private void checkMemory() {
    try {
      memoryFacts = MemoryFacts.read();
    } catch (IOException e) {
      throw new ManagerException("memory of the machine can not be read: " + e.getMessage(), e);
    }
    // reserved huge pages are no part of what is available
    if (!config.hugePages()) {
      checkFits(config.poolBytes(), memoryFacts);
    }
  }

  /**
   * Refuses a pool that leaves too little of the machine or its control group: tables, sessions and
   * the Java heap need memory too, the more the larger the pool is.
   */
  static void checkFits(long poolBytes, MemoryFacts facts) {
    long marginBytes = MARGIN_BYTES + poolBytes / MARGIN_SHARE;
    if (poolBytes <= facts.freeBytes() - marginBytes) {
      return;
    }
    boolean byGroup = facts.freeBytes() < facts.availableBytes();
    throw new ManagerException(
        "pool does not fit: wanted bytes="
            + poolBytes
            + ", margin bytes="
            + marginBytes
            + " for tables and sessions, free bytes="
            + facts.freeBytes()
            + (byGroup
                ? ", limited by the control group: limit bytes="
                    + facts.cgroupLimitBytes()
                    + ", used bytes="
                    + facts.cgroupUsedBytes()
                : ", limited by the machine: available bytes=" + facts.availableBytes()));
  }

  private CoreConfig coreConfig(long[] arenas) {
    long poolBytes = Arrays.stream(arenas).sum();
    return new CoreConfig(
        arenas,
        slabBytes,
        Math.min(poolBytes, config.queryBudgetBytes()),
        Math.min(poolBytes, config.instanceBudgetBytes()),
        CoreConfig.DEFAULT_LEASE_AGE_NS,
        metadata);
  }

  /** Whether the kernel names the process behind a connection by a descriptor. */
  private boolean probePeerPidFd() {
    try (UnixConnection near = UnixConnection.connect(config.socket(), PROBE_MS);
        UnixConnection far = listener.accept(PROBE_MS)) {
      Fd fd = far == null ? null : far.peerPidFd();
      if (fd != null) {
        fd.close();
      }
      return fd != null && near.fd() >= 0;
    }
  }

  private void logReady(Throwable failure) {
    if (failure == null) {
      LOG.info("pool is ready: bytes={}, seconds={}", pool.totalBytes(), uptimeSeconds());
    } else if (!stopping) {
      LOG.error("pool can not be prepared: {}", failure.getMessage());
    }
  }

  private double uptimeSeconds() {
    return (System.nanoTime() - startedNs) / NS_PER_SECOND;
  }

  private StatusSource.Facts facts() {
    String state = stopping ? "stopping" : pool.isReady() ? "ready" : "starting";
    return new StatusSource.Facts(
        identity.pid(),
        identity.epochText(),
        http.addressText(),
        config.socket().toString(),
        uptimeSeconds(),
        state,
        pool.readyPercent(),
        identity.version(),
        ssd == null
            ? null
            : new StatusSource.SsdFacts(
                ssd.describe(), ssd.capacityBytes(), config.ssd().policy(), ssd.recovered()));
  }

  /** Path of the Unix socket. */
  public Path socket() {
    return config.socket();
  }

  /** Address of the HTTP endpoints, with the port that was taken. */
  public InetSocketAddress httpAddress() {
    return http.address();
  }

  /** What the Manager holds and has done, as one JSON object; its keys are documented. */
  public String statusJson() {
    return status.statusJson();
  }

  /**
   * Waits until registrations are taken.
   *
   * @return false when the Manager was asked to stop; {@link #awaitTermination} tells when it has
   * @throws ManagerException when the pool can not be prepared or the time passes
   */
  public boolean awaitReady(Duration timeout) {
    try {
      pool.ready().get(timeout.toNanos(), TimeUnit.NANOSECONDS);
      return !stopping;
    } catch (ExecutionException e) {
      if (stopping) {
        return false;
      }
      throw new ManagerException(e.getCause().getMessage(), e.getCause());
    } catch (TimeoutException e) {
      throw new ManagerException(
          "pool is not ready: waited=" + timeout + ", percent=" + pool.readyPercent(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ManagerException("interrupted while the pool is being prepared", e);
    }
  }

  /** What was started and what was found, in a few lines for a person. */
  public String startupSummary() { // no Formatter: it would load locales while the pool is touched
    String users =
        config.allowedUids().isEmpty()
            ? "uid " + peerRule.ownUid() + " only"
            : "uids " + config.allowedUids();
    long groupLimit = memoryFacts.cgroupLimitBytes();
    return String.join(
        "\n",
        "OrbitKV Manager " + identity.version() + ", pid " + identity.pid(),
        "  pool      "
            + grouped(pool.totalBytes())
            + " bytes in "
            + pool.count()
            + " arenas, slabs of "
            + grouped(slabBytes)
            + " bytes"
            + (config.hugePages() ? ", huge pages" : ""),
        "  socket    " + config.socket() + ", " + users,
        "  HTTP      http://"
            + http.addressText()
            + (config.enablePrometheus() ? "" : ", metrics off"),
        "  limits    leases "
            + grouped(config.queryBudgetBytes())
            + " bytes, an instance "
            + grouped(config.instanceBudgetBytes())
            + " bytes; sessions "
            + Protocol.MAX_SESSIONS
            + ", connections "
            + BootstrapServer.maxConnections(),
        "  detected  "
            + cpus
            + " CPUs, "
            + grouped(memoryFacts.freeBytes())
            + " bytes free"
            + (groupLimit == Long.MAX_VALUE
                ? ""
                : " (control group limit " + grouped(groupLimit) + ")")
            + ", SO_PEERPIDFD "
            + (peerPidFd ? "yes" : "no, pidfd_open instead")
            + ", wake-ups "
            + (control.neverBlocks() ? "by the kernel" : "by write")
            + ssdSummary());
  }

  private String ssdSummary() {
    return ssd == null
        ? ""
        : "\n  SSD       "
            + grouped(ssd.capacityBytes())
            + " bytes by "
            + ssd.describe()
            + "\n            "
            + ssd.recovered().summary();
  }

  /** A number with a comma before each three digits. */
  private static String grouped(long number) {
    StringBuilder digits = new StringBuilder().append(number);
    for (int i = digits.length() - 3; i > 0; i -= 3) {
      digits.insert(i, ',');
    }
    return digits.toString();
  }

  /**
   * Stops, each step bounded: closes admission, waits for operations in progress, tells every
   * engine, answers the frames that have arrived, writes to SSD, and releases all. Idempotent; a
   * second caller waits for the first.
   *
   * @param drain most time for operations in progress
   * @return false when operations were still in progress then; the log names them
   */
  public synchronized boolean stop(Duration drain) {
    if (stopped) {
      return drained;
    }
    stopping = true;
    stopped = true;
    LOG.info("Manager stops: drain timeout={}", drain);
    try {
      server.closeListener();
      drained = Waits.completes(control.beginStop(), drain.toMillis());
      if (!drained) {
        logLeft(status.snapshot(), drain);
      }
      Waits.answer(control.endSessions());
      drained &= server.answerArrived();
      flushSsd(drain);
    } catch (RuntimeException e) { // whatever it is, all else must be released
      LOG.error("stop is incomplete", e);
      drained = false;
    } finally {
      try {
        release();
      } finally {
        terminated.countDown();
      }
    }
    LOG.info("Manager stopped: drained={}", drained);
    return drained;
  }

  /** Writes what is worth keeping to SSD, within the time that operations had as well. */
  private void flushSsd(Duration bound) {
    if (ssd != null && !Waits.completes(control.flushSsd(), bound.toMillis())) {
      SsdStats left = status.snapshot().ssd();
      LOG.warn(
          "not everything is on SSD: waited={}, blocks that wait={}, clears that wait={}",
          bound,
          left.queued(),
          left.waitingClears());
    }
  }

  private static void logLeft(CoreStats left, Duration drain) {
    LOG.warn(
        "operations are left after the drain: waited={}, grants active={}, retained={}, sessions={}",
        drain,
        left.grantsActive(),
        left.retainedOperations(),
        left.perSession());
  }

  RegisteredStates states() {
    return states;
  }

  /** Stops on a thread of its own. */
  void requestStop() {
    Thread.ofPlatform().name("orbitkv-stop").start(() -> stop(config.drainTimeout()));
  }

  /** Stops with the drain time of the configuration. */
  @Override
  public void close() {
    stop(config.drainTimeout());
  }

  /** Waits until the Manager has stopped, whoever asked for it. */
  public void awaitTermination() throws InterruptedException {
    terminated.await();
  }

  /** Releases what was opened, users first. */
  private void release() {
    if (server != null) {
      closeQuietly(server::closeListener);
    } else if (listener != null) {
      closeQuietly(listener::unlink);
      closeQuietly(listener);
    }
    closeQuietly(control);
    closeQuietly(server);
    closeQuietly(http);
    if (!closeQuietly(ssd)) {
      LOG.error("the pool stays mapped: the device may still write there");
      closeQuietly(claim);
      return;
    }
    closeQuietly(pool);
    closeQuietly(metadata);
    closeQuietly(claim);
  }

  private static boolean closeQuietly(AutoCloseable part) {
    if (part == null) {
      return true;
    }
    try {
      part.close();
      return true;
    } catch (Throwable t) { // whatever it is, all else must be closed
      LOG.error("part can not be closed: {}", part.getClass().getSimpleName(), t);
      return false;
    }
  }

  boolean isStopping() {
    return stopping;
  }

  ManagerIdentity identity() {
    return identity;
  }

  PeerRule peerRule() {
    return peerRule;
  }

  ControlAgent control() {
    return control;
  }

  PoolArenas pool() {
    return pool;
  }

  EdgeCounters counters() {
    return counters;
  }

  long slabBytes() {
    return slabBytes;
  }
}
