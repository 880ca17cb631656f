package io.orbitkv.manager;

import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Status;
import io.orbitkv.core.CoreStats;
import io.orbitkv.core.SsdPort;
import io.orbitkv.core.SsdRefusal;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.function.ToDoubleFunction;

/**
 * The metrics in Prometheus text form, all of one snapshot. Thread-safe. They are set up with the
 * first answer: it would delay the start.
 */
final class MetricsText {
  private static final String PREFIX = "orbitkv_";
  private static final double NS_PER_SECOND = 1e9;

  private final PrometheusRegistry registry = new PrometheusRegistry();
  private final StatusSource status;
  private final EdgeCounters edge;
  private boolean registered;
  private CoreStats current;

  MetricsText(StatusSource status, EdgeCounters edge) {
    this.status = status;
    this.edge = edge;
  }

  private void register() {
    poolGauges();
    useGauges();
    cacheCounters();
    copyCounters();
    edgeMetrics();
    if (current.ssd() != null) {
      ssdGauges();
      ssdCounters();
      ssdReasons();
    }
    registered = true;
  }

  /** Media type of {@link #render}. */
  String contentType() {
    return PrometheusTextFormatWriter.CONTENT_TYPE;
  }

  /** All metrics of now. */
  synchronized String render() {
    current = status.snapshot();
    if (!registered) {
      register();
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      PrometheusTextFormatWriter.create().write(out, registry.scrape());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString(StandardCharsets.UTF_8);
  }

  private void poolGauges() {
    gauge("pool_capacity_bytes", "Bytes of the pool", CoreStats::poolCapacityBytes);
    gauge("pool_used_bytes", "Bytes of all allocations", CoreStats::poolUsedBytes);
    gauge("pool_slabs", "Slabs of the pool", CoreStats::slabsTotal);
    gauge("pool_free_slabs", "Slabs that belong to no block size", CoreStats::slabsFree);
    gauge("cache_resident_blocks", "Blocks that lookups find", CoreStats::residentBlocks);
    gauge("cache_resident_bytes", "Bytes of resident blocks", CoreStats::residentBytes);
    gauge("inflight_blocks", "Blocks of publishes in progress", CoreStats::unsealedBlocks);
    gauge("metadata_bytes", "Bytes of the core's tables", CoreStats::metadataBytes);
  }

  private void useGauges() {
    gauge(
        "pinned_for_load_unique_blocks",
        "Blocks held by leases or operations",
        CoreStats::pinnedBlocks);
    gauge("pinned_for_load_refs", "Holders of pinned blocks", CoreStats::pinRefs);
    gauge("query_reserved_bytes", "Bytes under leases", CoreStats::leaseBytes);
    gauge("query_leases", "Live leases", CoreStats::leases);
    gauge(
        "query_pending", "Queries with an identity that are remembered", CoreStats::queriesPending);
    gauge(
        "query_oldest_lease_seconds",
        "Age of the oldest lease",
        s -> s.oldestLeaseNs() / NS_PER_SECOND);
    gauge("grants_active", "Operations that are not settled", CoreStats::grantsActive);
    gauge("retained_operations", "Operations held for evidence", CoreStats::retainedOperations);
    gauge("retained_bytes", "Bytes of retained operations", CoreStats::retainedBytes);
    gauge(
        "oldest_retained_seconds",
        "Age of the oldest retained operation",
        s -> s.oldestRetainedNs() / NS_PER_SECOND);
    gauge("sessions", "Live sessions", CoreStats::sessions);
    gauge("sessions_retained", "Ended sessions that hold a slot", CoreStats::sessionsRetained);
    gauge("registrations", "Registrations", CoreStats::registrations);
  }

  private void cacheCounters() {
    counter("cache_lookups_total", "Lookups", CoreStats::lookupsTotal);
    counter("cache_lookup_blocks_total", "Blocks asked for", CoreStats::lookupBlocksTotal);
    counter("cache_block_hits_total", "Blocks found", CoreStats::hitBlocksTotal);
    CounterWithCallback.builder()
        .name(PREFIX + "cache_block_misses_total")
        .help("Blocks not found, by reason")
        .labelNames("reason")
        .callback(out -> {
          for (MissReason reason : MissReason.values()) {
            if (reason != MissReason.NONE) {
              out.call((double) current.missesTotal()[reason.code()], Labels.of(reason));
            }
          }
        })
        .register(registry);
    counter(
        "query_replies_expired_total",
        "Queries forgotten, since their latest answer was too old",
        CoreStats::queriesExpiredTotal);
    counter("cache_block_insertions_total", "Blocks sealed", CoreStats::insertionsTotal);
    counter(
        "cache_block_admission_rejections_total",
        "Blocks of publishes without room",
        CoreStats::refusedTotal);
    counter(
        "cache_block_already_held_total", "Blocks of publishes held before", CoreStats::heldTotal);
    counter("cache_block_evictions_total", "Blocks evicted", CoreStats::evictionsTotal);
    counter(
        "cache_eviction_reclaimed_bytes_total",
        "Bytes of evicted blocks",
        CoreStats::evictedBytesTotal);
  }

  private void copyCounters() {
    counter("save_operations_total", "Publishes sealed", CoreStats::publishesTotal);
    counter("save_bytes_total", "Bytes published", CoreStats::publishedBytesTotal);
    counter("load_operations_total", "Restores drained whole", CoreStats::restoresTotal);
    counter("load_bytes_total", "Bytes restored", CoreStats::restoredBytesTotal);
    counter("operation_failures_total", "Operations that ended otherwise", CoreStats::failedTotal);
    counter(
        "operations_revoked_total",
        "Grants taken back since their engine did not begin and others waited for their room",
        CoreStats::revokedTotal);
    counter(
        "damaged_blocks_total",
        "Blocks dropped since an engine found other bytes than were published",
        CoreStats::damagedTotal);
    counter(
        "stale_commands_total", "Commands of a former generation", CoreStats::staleCommandsTotal);
  }

  private void ssdGauges() {
    gauge("ssd_capacity_bytes", "Bytes that blocks may take", s -> s.ssd().capacityBytes());
    gauge("ssd_used_bytes", "Bytes of blocks on SSD", s -> s.ssd().usedBytes());
    gauge("ssd_blocks", "Blocks that lookups find on SSD", s -> s.ssd().blocks());
    gauge("ssd_segments", "Segments of all files", s -> s.ssd().segments());
    gauge("ssd_free_segments", "Empty segments", s -> s.ssd().freeSegments());
    gauge("ssd_retired_segments", "Segments set aside", s -> s.ssd().retiredSegments());
    gauge("ssd_queued_blocks", "Blocks that wait to be written", s -> s.ssd().queued());
    gauge("ssd_queue_depth", "Reads and writes in progress", s -> s.ssd().inFlight());
    gauge("ssd_loading_blocks", "Blocks on their way into the pool", s -> s.ssd().loads());
    gauge("ssd_pinned_bytes", "Bytes of the pool that loads pin", s -> s.ssd().pinnedBytes());
    gauge("ssd_stalled_paths", "Files that do not answer", s -> s.ssd().stalledPaths());
    gauge("ssd_slow_paths", "Files slower than the floor", s -> s.ssd().slowPaths());
    GaugeWithCallback.builder()
        .name(PREFIX + "ssd_read_bytes_per_second")
        .help("Speed of reads from a file, as last measured")
        .labelNames("path")
        .callback(out -> {
          long[] speeds = current.ssd().readBytesPerSecond();
          for (int path = 0; path < speeds.length; path++) {
            out.call((double) speeds[path], Integer.toString(path));
          }
        })
        .register(registry);
    gauge("ssd_retained_requests", "Requests that do not return", s -> s.ssd().retained());
    gauge("ssd_waiting_clears", "Clears not on disk yet", s -> s.ssd().waitingClears());
    gauge(
        "ssd_lifetime_written_bytes",
        "Bytes written since the files were made",
        s -> s.ssd().lifetimeBytes());
  }

  private void ssdCounters() {
    counter("ssd_block_hits_total", "Blocks found on SSD alone", s -> s.ssd().hitBlocksTotal());
    counter("ssd_read_blocks_total", "Blocks loaded", s -> s.ssd().readBlocksTotal());
    counter("ssd_read_bytes_total", "Bytes loaded", s -> s.ssd().readBytesTotal());
    counter("ssd_joined_loads_total", "Loads joined", s -> s.ssd().joinedLoadsTotal());
    counter("ssd_written_blocks_total", "Blocks written", s -> s.ssd().writtenBlocksTotal());
    counter("ssd_written_bytes_total", "Bytes written", s -> s.ssd().writtenBytesTotal());
    counter("ssd_block_evictions_total", "Blocks replaced", s -> s.ssd().evictedBlocksTotal());
    counter("ssd_stalls_total", "Times a file stopped answering", s -> s.ssd().stallsTotal());
    counter("ssd_crc_failures_total", "Wrong checksums", s -> s.ssd().crcFailuresTotal());
  }

  private void ssdReasons() {
    CounterWithCallback.builder()
        .name(PREFIX + "ssd_admission_refused_total")
        .help("Blocks not written, by reason")
        .labelNames("reason")
        .callback(out -> {
          for (SsdRefusal reason : SsdRefusal.values()) {
            out.call((double) current.ssd().refusedTotal()[reason.code()], Labels.of(reason));
          }
        })
        .register(registry);
    CounterWithCallback.builder()
        .name(PREFIX + "ssd_load_refused_total")
        .help("Loads not begun, by reason")
        .labelNames("reason")
        .callback(out -> {
          out.call((double) current.ssd().noRoomTotal(), "no_room");
          out.call((double) current.ssd().bypassedTotal(), "stalled");
        })
        .register(registry);
    CounterWithCallback.builder()
        .name(PREFIX + "ssd_failures_total")
        .help("Failed reads and writes, by result")
        .labelNames("operation", "result")
        .callback(out -> {
          for (int result = 1; result < SsdPort.RESULTS; result++) {
            String name = SsdStatus.RESULTS[result];
            out.call((double) current.ssd().readFailuresTotal()[result], "read", name);
            out.call((double) current.ssd().writeFailuresTotal()[result], "write", name);
          }
        })
        .register(registry);
  }

  private void edgeMetrics() {
    CounterWithCallback.builder()
        .name(PREFIX + "sessions_ended_total")
        .help("Sessions ended, by reason")
        .labelNames("reason")
        .callback(out -> {
          for (SessionEnd reason : SessionEnd.values()) {
            out.call((double) edge.sessionsEnded(reason), Labels.of(reason));
          }
        })
        .register(registry);
    CounterWithCallback.builder()
        .name(PREFIX + "connection_failures_total")
        .help("Connections refused or closed for a fault, by status")
        .labelNames("reason")
        .callback(out -> {
          for (Status reason : Status.values()) {
            if (edge.connectionFailures(reason) > 0) {
              out.call((double) edge.connectionFailures(reason), Labels.of(reason));
            }
          }
        })
        .register(registry);
    counter("internal_errors_total", "Faults of the Manager itself", _ -> edge.internalErrors());
    gauge("ready_percent", "How much of the pool is present", _ -> status.facts().readyPercent());
    gauge("uptime_seconds", "Seconds since the start", _ -> status.facts().uptimeSeconds());
  }

  private void gauge(String name, String help, ToDoubleFunction<CoreStats> value) {
    GaugeWithCallback.builder()
        .name(PREFIX + name)
        .help(help)
        .callback(out -> out.call(value.applyAsDouble(current)))
        .register(registry);
  }

  private void counter(String name, String help, ToDoubleFunction<CoreStats> value) {
    CounterWithCallback.builder()
        .name(PREFIX + name)
        .help(help)
        .callback(out -> out.call(value.applyAsDouble(current)))
        .register(registry);
  }
}
