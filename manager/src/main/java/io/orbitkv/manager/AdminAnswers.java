package io.orbitkv.manager;

import io.orbitkv.channel.MissReason;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.Whereabouts;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Answers to admin requests that change or look into the cache, as JSON. */
final class AdminAnswers {
  private static final long DURABLE_BOUND_NS = 5_000_000_000L;
  private static final long LOOK_NS = 2_000_000L;

  private AdminAnswers() {}

  /**
   * Clears a namespace, or everything for null, and waits until that would outlive the Manager.
   *
   * @throws io.orbitkv.core.CoreException when another clear is still being written
   */
  static String clear(ControlAgent control, byte[] namespace) {
    CacheCore.Cleared cleared =
        Waits.answer(control.call(core -> core.clear(namespace, System.nanoTime())));
    ObjectNode node = JsonMapper.shared().createObjectNode();
    node.put("namespaces", cleared.namespaces());
    node.put("dram_blocks", cleared.dramBlocks());
    node.put("dram_bytes", cleared.dramBytes());
    node.put("ssd_blocks", cleared.ssdBlocks());
    node.put("ssd_bytes", cleared.ssdBytes());
    node.put("durable", isDurable(control));
    return node.toString();
  }

  private static boolean isDurable(ControlAgent control) {
    long end = System.nanoTime() + DURABLE_BOUND_NS;
    while (!Waits.answer(control.call(CacheCore::areClearsDurable))) {
      if (System.nanoTime() - end >= 0) {
        return false;
      }
      LockSupport.parkNanos(LOOK_NS);
    }
    return true;
  }

  /** Says where a block is. */
  static String explain(ControlAgent control, byte[] namespace, byte[] hash) {
    List<Whereabouts> all = Waits.answer(control.call(core -> core.explain(namespace, hash)));
    ObjectNode node = JsonMapper.shared().createObjectNode();
    node.put("namespace", HexFormat.of().formatHex(namespace));
    node.put("hash", HexFormat.of().formatHex(hash));
    node.put("namespace_known", all.isEmpty() || all.getFirst().group() >= 0);
    var groups = node.putArray("groups");
    for (Whereabouts each : all) {
      put(groups.addObject(), each);
    }
    return node.toString();
  }

  private static void put(ObjectNode node, Whereabouts where) {
    if (where.group() >= 0) {
      node.put("group", where.group());
    }
    node.put("found", where.inDram() || where.onSsd());
    node.put("explanation", sentence(where));
    if (where.inDram()) {
      ObjectNode dram = node.putObject("dram");
      dram.put("arena", where.arena());
      dram.put("offset", where.offset());
      dram.put("holders", where.holders());
    }
    if (where.onSsd()) {
      ObjectNode ssd = node.putObject("ssd");
      ssd.put("segment", where.segment());
      ssd.put("page", where.page());
      ssd.put("loading", where.loading());
      ssd.put("reachable", where.reachable());
    }
    if (where.reason() != MissReason.NONE) {
      node.put("reason", Labels.of(where.reason()));
      if (where.ageSeconds() >= 0) {
        node.put("seconds_ago", where.ageSeconds());
      }
    }
  }

  private static String sentence(Whereabouts where) {
    String when = where.ageSeconds() < 0 ? "" : ", " + where.ageSeconds() + " s ago";
    if (where.group() < 0) {
      return "this Manager knows no such namespace: since its start nobody registered it, and no"
          + " block of it was found on SSD"
          + (where.reason() == MissReason.OTHER_NAMESPACE
              ? "; the hash is known in another namespace" + when
              : "");
    }
    return switch (where.reason()) {
      case NONE -> place(where);
      case NEVER_STORED -> "never stored, as far as the history of a million hashes goes";
      case EVICTED -> "evicted: it gave way to other blocks" + when;
      case OTHER_NAMESPACE -> "known in another namespace or group only" + when;
      case REFUSED -> "a publish of it was refused: the pool was in use" + when;
      case CLEARED -> "removed by a clear" + when;
      case BUDGET -> "a budget was used up" + when;
      case TIER -> "its copy on SSD was damaged or could not be read" + when;
    };
  }

  private static String place(Whereabouts where) {
    if (where.isPublished()) {
      return "being published: found once that has ended";
    }
    if (where.inDram()) {
      return where.onSsd() ? "in DRAM, and on SSD" : "in DRAM";
    }
    if (where.loading()) {
      return "on its way from SSD into DRAM";
    }
    return where.reachable() ? "on SSD" : "on SSD, which does not answer now";
  }
}
