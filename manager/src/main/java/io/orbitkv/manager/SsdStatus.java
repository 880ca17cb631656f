package io.orbitkv.manager;

import io.orbitkv.core.SsdPort;
import io.orbitkv.core.SsdRefusal;
import io.orbitkv.core.SsdStats;
import io.orbitkv.storage.Recovered;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** The SSD tier in the status. */
final class SsdStatus {
  /** Names of the results of {@link SsdPort}, by code; 0 is success. */
  static final String[] RESULTS = {"ok", "io_error", "short", "damaged", "no_space"};

  private SsdStatus() {}

  static void put(ObjectNode node, SsdStats s, StatusSource.SsdFacts facts) {
    putGauges(node, s);
    putCounters(node, s);
    ObjectNode refused = node.putObject("write_refused_total");
    for (SsdRefusal reason : SsdRefusal.values()) {
      refused.put(Labels.of(reason), s.refusedTotal()[reason.code()]);
    }
    putFailures(node.putObject("read_failures_total"), s.readFailuresTotal());
    putFailures(node.putObject("write_failures_total"), s.writeFailuresTotal());
    if (facts != null) {
      node.put("backend", facts.backend());
      node.put("file_bytes", facts.fileBytes());
      node.put("write_policy", Labels.of(facts.policy()));
      putRecovered(node.putObject("recovered"), facts.recovered());
    }
  }

  private static void putGauges(ObjectNode node, SsdStats s) {
    node.put("blocks", s.blocks());
    node.put("used_bytes", s.usedBytes());
    node.put("capacity_bytes", s.capacityBytes());
    node.put("segments", s.segments());
    node.put("segments_free", s.freeSegments());
    node.put("segments_retired", s.retiredSegments());
    node.put("queued_blocks", s.queued());
    node.put("queue_depth", s.inFlight());
    node.put("loading_blocks", s.loads());
    node.put("pinned_bytes", s.pinnedBytes());
    node.put("stalled", s.stalledPaths() > 0);
    node.put("stalled_paths", s.stalledPaths());
    node.put("slow_paths", s.slowPaths());
    ArrayNode speeds = node.putArray("read_bytes_per_second");
    for (long speed : s.readBytesPerSecond()) {
      speeds.add(speed);
    }
    node.put("retained_requests", s.retained());
    node.put("waiting_clears", s.waitingClears());
  }

  private static void putCounters(ObjectNode node, SsdStats s) {
    node.put("stalls_total", s.stallsTotal());
    node.put("hit_blocks_total", s.hitBlocksTotal());
    node.put("read_blocks_total", s.readBlocksTotal());
    node.put("read_bytes_total", s.readBytesTotal());
    node.put("joined_loads_total", s.joinedLoadsTotal());
    node.put("written_blocks_total", s.writtenBlocksTotal());
    node.put("written_bytes_total", s.writtenBytesTotal());
    node.put("lifetime_written_bytes", s.lifetimeBytes());
    node.put("evicted_blocks_total", s.evictedBlocksTotal());
    node.put("crc_failures_total", s.crcFailuresTotal());
    ObjectNode loads = node.putObject("load_refused_total");
    loads.put("no_room", s.noRoomTotal());
    loads.put("stalled", s.bypassedTotal());
  }

  private static void putFailures(ObjectNode node, long[] byResult) {
    for (int result = 1; result < SsdPort.RESULTS; result++) {
      node.put(RESULTS[result], byResult[result]);
    }
  }

  private static void putRecovered(ObjectNode node, Recovered found) {
    node.put("blocks", found.blocks());
    node.put("segments", found.segments());
    node.put("damaged_segments", found.damagedSegments());
    node.put("foreign_segments", found.foreignSegments());
    node.put("exchanged_segments", found.exchangedSegments());
    node.put("cleared_blocks", found.clearedBlocks());
    node.put("unusable_blocks", found.unusableBlocks());
    node.put("new_files", found.newFiles());
  }
}
