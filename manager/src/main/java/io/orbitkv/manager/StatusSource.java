package io.orbitkv.manager;

import io.orbitkv.channel.MissReason;
import io.orbitkv.core.CoreStats;
import io.orbitkv.core.SsdConfig;
import io.orbitkv.storage.Recovered;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * What the Manager shows of itself: snapshots that the control thread makes, at most one each 100
 * ms, however many ask. Thread-safe; a reader waits a second at most and then gets the last one.
 */
final class StatusSource {
  private static final long FRESH_NS = 100_000_000L;
  private static final long WAIT_MS = 1_000;
  private static final double NS_PER_SECOND = 1e9;
  private static final double RATE_STEPS = 1e4;

  private final Supplier<CompletableFuture<CoreStats>> stats;
  private final RegisteredStates states;
  private final Supplier<Facts> facts;
  private CompletableFuture<CoreStats> refresh;
  private long refreshedNs;
  private volatile CoreStats last;

  /** Loaded with the first JSON: it would delay the start. */
  private static final class Json {
    static final JsonMapper MAPPER = JsonMapper.shared();
  }

  /**
   * What others than the core know.
   *
   * @param managerPid process of the Manager
   * @param epoch Manager epoch
   * @param httpAddress address of the HTTP endpoints
   * @param socket path of the Unix socket
   * @param uptimeSeconds seconds since the start
   * @param state starting, ready or stopping
   * @param readyPercent how much of the pool is present
   * @param version software version
   * @param ssd the SSD tier; null without one
   */
  record Facts(
      int managerPid,
      String epoch,
      String httpAddress,
      String socket,
      double uptimeSeconds,
      String state,
      int readyPercent,
      String version,
      SsdFacts ssd) {}

  /**
   * What others than the core know of the SSD tier.
   *
   * @param backend backend, geometry and measured speed
   * @param fileBytes bytes of all files
   * @param policy which blocks are written
   * @param recovered what was found at the start
   */
  record SsdFacts(
      String backend, long fileBytes, SsdConfig.WritePolicy policy, Recovered recovered) {}

  /** Starts with a first snapshot, so that there is always one. */
  StatusSource(
      CoreStats first,
      Supplier<CompletableFuture<CoreStats>> stats,
      Supplier<Facts> facts,
      RegisteredStates states) {
    this.states = states;
    this.last = first;
    this.refreshedNs = System.nanoTime() - FRESH_NS;
    this.refresh = CompletableFuture.completedFuture(first);
    this.stats = stats;
    this.facts = facts;
  }

  /** A snapshot, at most 100 ms old unless the control thread is busy or has ended. */
  CoreStats snapshot() {
    try {
      last = request().get(WAIT_MS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException e) {
      return last;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return last;
  }

  private synchronized CompletableFuture<CoreStats> request() {
    long now = System.nanoTime();
    if (refresh.isDone() && now - refreshedNs >= FRESH_NS) {
      refreshedNs = now;
      refresh = stats.get();
    }
    return refresh;
  }

  /** What the Manager is, beside the snapshot. */
  Facts facts() {
    return facts.get();
  }

  /** The whole status as one JSON object. */
  String statusJson() {
    CoreStats s = snapshot();
    ObjectNode node = Json.MAPPER.createObjectNode();
    putPool(node, s);
    putCounters(node, s);
    putMisses(node, s);
    putFacts(node);
    if (s.ssd() != null) {
      SsdStatus.put(node.putObject("ssd"), s.ssd(), facts.get().ssd());
    }
    putSessions(node.putArray("session_list"), s);
    putRetained(node.putArray("retained_list"), s);
    return Json.MAPPER.writeValueAsString(node);
  }

  /** Live and retained sessions by instance, as JSON. */
  String instancesJson() {
    ObjectNode node = Json.MAPPER.createObjectNode();
    putSessions(node.putArray("instances"), snapshot());
    return Json.MAPPER.writeValueAsString(node);
  }

  /** State of readiness as JSON. */
  String readyJson() {
    Facts f = facts.get();
    ObjectNode node = Json.MAPPER.createObjectNode();
    node.put("ready", f.state().equals("ready"));
    node.put("percent", f.readyPercent());
    node.put("state", f.state());
    return Json.MAPPER.writeValueAsString(node);
  }

  private static void putPool(ObjectNode node, CoreStats s) {
    node.put("pool_capacity_bytes", s.poolCapacityBytes());
    node.put("pool_used_bytes", s.poolUsedBytes());
    node.put("slabs_total", s.slabsTotal());
    node.put("slabs_free", s.slabsFree());
    node.put("resident_blocks", s.residentBlocks());
    node.put("resident_bytes", s.residentBytes());
    node.put("unsealed_blocks", s.unsealedBlocks());
    node.put("pinned_blocks", s.pinnedBlocks());
    node.put("pin_refs", s.pinRefs());
    node.put("leases", s.leases());
    node.put("lease_bytes", s.leaseBytes());
    node.put("oldest_lease_seconds", s.oldestLeaseNs() / NS_PER_SECOND);
    node.put("grants_active", s.grantsActive());
    node.put("queries_pending", s.queriesPending());
    node.put("retained_operations", s.retainedOperations());
    node.put("retained_bytes", s.retainedBytes());
    node.put("oldest_retained_seconds", s.oldestRetainedNs() / NS_PER_SECOND);
    node.put("sessions", s.sessions());
    node.put("sessions_retained", s.sessionsRetained());
    node.put("registrations", s.registrations());
    node.put("metadata_bytes", s.metadataBytes());
  }

  private static void putCounters(ObjectNode node, CoreStats s) {
    node.put("published_blocks_total", s.insertionsTotal());
    node.put("held_blocks_total", s.heldTotal());
    node.put("refused_blocks_total", s.refusedTotal());
    node.put("evicted_blocks_total", s.evictionsTotal());
    node.put("evicted_bytes_total", s.evictedBytesTotal());
    node.put("restores_total", s.restoresTotal());
    node.put("restored_bytes_total", s.restoredBytesTotal());
    node.put("publishes_total", s.publishesTotal());
    node.put("published_bytes_total", s.publishedBytesTotal());
    node.put("failed_operations_total", s.failedTotal());
    node.put("revoked_operations_total", s.revokedTotal());
    node.put("damaged_blocks_total", s.damagedTotal());
    node.put("stale_commands_total", s.staleCommandsTotal());
    node.put("violations_total", s.violationsTotal());
    node.put("lookups_total", s.lookupsTotal());
    node.put("lookup_blocks_total", s.lookupBlocksTotal());
    node.put("hit_blocks_total", s.hitBlocksTotal());
    node.put("hit_rate", hitRate(s.hitBlocksTotal(), s.lookupBlocksTotal()));
  }

  /** Found blocks by blocks asked for, to four digits; null before any was asked for. */
  private static Double hitRate(long hits, long blocks) {
    return blocks == 0 ? null : Math.round(RATE_STEPS * hits / blocks) / RATE_STEPS;
  }

  private static void putMisses(ObjectNode node, CoreStats s) {
    ObjectNode misses = node.putObject("misses_total");
    for (MissReason reason : MissReason.values()) {
      if (reason != MissReason.NONE) {
        misses.put(Labels.of(reason), s.missesTotal()[reason.code()]);
      }
    }
  }

  private void putFacts(ObjectNode node) {
    Facts f = facts.get();
    node.put("manager_pid", f.managerPid());
    node.put("manager_epoch", f.epoch());
    node.put("http_address", f.httpAddress());
    node.put("socket", f.socket());
    node.put("uptime_seconds", f.uptimeSeconds());
    node.put("state", f.state());
    node.put("ready_percent", f.readyPercent());
    node.put("version", f.version());
  }

  private static void putRetained(ArrayNode array, CoreStats s) {
    for (CoreStats.Retained retained : s.retained()) {
      ObjectNode line = array.addObject();
      line.put("slot", retained.slot());
      line.put("pid", retained.pid());
      line.put("instance", retained.instance());
      line.put("record", retained.record());
      line.put("kind", retained.publish() ? "publish" : "restore");
      line.put("reason", Labels.of(retained.reason()));
      line.put("age_seconds", retained.ageNs() / NS_PER_SECOND);
      line.put("bytes", retained.bytes());
    }
  }

  private void putSessions(ArrayNode array, CoreStats s) {
    for (CoreStats.Session session : s.perSession()) {
      ObjectNode line = array.addObject();
      line.put("slot", session.slot());
      line.put("pid", session.pid());
      line.put("instance", session.instance());
      line.put("client", session.client());
      line.put("open", session.open());
      line.put("registrations", session.registrations());
      line.put("leases", session.leases());
      line.put("grants", session.grants());
      line.put("lookup_blocks_total", session.lookupBlocksTotal());
      line.put("hit_blocks_total", session.hitBlocksTotal());
      line.put("hit_rate", hitRate(session.hitBlocksTotal(), session.lookupBlocksTotal()));
      line.put("restored_blocks_total", session.restoredBlocksTotal());
      line.put("restored_bytes_total", session.restoredBytesTotal());
      line.put("published_blocks_total", session.publishedBlocksTotal());
      line.put("published_bytes_total", session.publishedBytesTotal());
      states.put(line.putArray("states"), session.slot());
    }
  }
}
