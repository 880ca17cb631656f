package io.orbitkv.client.bridge;

import io.orbitkv.channel.Protocol;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.PublishItem;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.RestoreItem;
import io.orbitkv.client.RestoreResult;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** Reads the arguments of lookups, restores and saves, and writes their answers. */
final class OperationCalls {
  private static final int RESTORE_ITEM_BYTES = 7 * Long.BYTES;
  private static final int SAVE_ITEM_BYTES = 5 * Long.BYTES;

  private OperationCalls() {}

  /**
   * A lookup of the prefix of group 0.
   *
   * @param call query, revision, maximum lease age in ms, number of namespaces, bytes of a hash,
   *     number of hashes, the namespaces, the hashes
   */
  static LookupRequestSpec lookup(CallBuffer call) {
    long queryId = call.number();
    int revision = call.number("revision", 0, Integer.MAX_VALUE);
    int maxLeaseAgeMs = call.number("max lease age ms", 0, Integer.MAX_VALUE);
    int namespaceCount = call.count("namespaces", Protocol.NAMESPACE_BYTES);
    int hashBytes = call.number("hash bytes", Protocol.MIN_HASH_BYTES, Protocol.MAX_HASH_BYTES);
    int hashCount = call.count("hashes", hashBytes);
    List<byte[]> namespaces = new ArrayList<>(namespaceCount);
    for (int i = 0; i < namespaceCount; i++) {
      namespaces.add(call.bytes(Protocol.NAMESPACE_BYTES));
    }
    return new LookupRequestSpec(
        namespaces,
        1,
        call.hashes(hashCount, hashBytes),
        LookupRequestSpec.Mode.PREFIX,
        queryId,
        revision,
        maxLeaseAgeMs);
  }

  /**
   * Writes prefix, reason of the first miss, number of leases, and id, epoch, namespace, group and
   * blocks of each; returns the outcome: 0 ready, 1 loading, 2 busy, 3 candidates, 4 miss.
   */
  static int answer(LookupResult result, CallBuffer answer) {
    answer
        .put(result.prefix())
        .put(result.groups().isEmpty() ? 0 : result.groups().getFirst().firstMiss().code())
        .put(result.leases().size());
    for (Lease lease : result.leases()) {
      answer
          .put(lease.id())
          .put(lease.epoch())
          .put(lease.namespace())
          .put(lease.group())
          .put(lease.blocks());
    }
    return code(result.outcome());
  }

  /**
   * Items of a restore.
   *
   * @param call number of items; of each id, epoch, namespace, group and blocks of the lease, skip,
   *     number of pages, the pages
   */
  static List<RestoreItem> restoreItems(CallBuffer call) {
    int count = call.count("items", RESTORE_ITEM_BYTES);
    List<RestoreItem> items = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      Lease lease =
          new Lease(
              call.number(),
              call.number(),
              call.number("namespace", 0, Integer.MAX_VALUE),
              call.number("group", 0, Integer.MAX_VALUE),
              call.number("blocks", 0, Integer.MAX_VALUE));
      int skip = call.number("skip", 0, Integer.MAX_VALUE);
      items.add(new RestoreItem(lease, skip, call.pages(call.count("pages", Long.BYTES))));
    }
    return items;
  }

  /**
   * Items of a save.
   *
   * @param call number of items; of each group, position, bytes of a hash, number of blocks, 1 with
   *     a parent and else 0, the parent, the hashes, the pages
   */
  static List<PublishItem> saveItems(CallBuffer call) {
    int count = call.count("items", SAVE_ITEM_BYTES);
    List<PublishItem> items = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      int group = call.number("group", 0, Integer.MAX_VALUE);
      int position = call.number("position", 0, Integer.MAX_VALUE);
      int hashBytes = call.number("hash bytes", Protocol.MIN_HASH_BYTES, Protocol.MAX_HASH_BYTES);
      int blocks = call.count("blocks", hashBytes);
      byte[] parent = call.number("parent", 0, 1) == 0 ? null : call.bytes(hashBytes);
      BlockHashes hashes = call.hashes(blocks, hashBytes);
      items.add(new PublishItem(group, position, parent, hashes, call.pages(blocks)));
    }
    return items;
  }

  /**
   * Writes copy time, number of failed pages, their indices and the message; returns the status.
   */
  static int answer(RestoreResult result, CallBuffer answer) {
    BitSet missing = result.notDelivered();
    answer.put(result.copyNs()).put(missing.cardinality());
    for (int i = missing.nextSetBit(0); i >= 0; i = missing.nextSetBit(i + 1)) {
      answer.put(i);
    }
    answer.put(result.message());
    return result.status().code();
  }

  /**
   * Writes copy time, blocks stored, held and refused, number of results, result of each block (0
   * stored, 1 held, 2 refused, 3 not stored) and the message; returns the status.
   */
  static int answer(PublishResult result, CallBuffer answer) {
    answer.put(result.copyNs()).put(result.stored()).put(result.held()).put(result.refused());
    answer.put(result.blocks().size());
    for (PublishResult.Block block : result.blocks()) {
      answer.put(code(block));
    }
    answer.put(result.message());
    return result.status().code();
  }

  private static int code(LookupResult.Outcome outcome) {
    return switch (outcome) {
      case READY -> 0;
      case LOADING -> 1;
      case BUSY -> 2;
      case CANDIDATES -> 3;
      case MISS -> 4;
    };
  }

  private static int code(PublishResult.Block block) {
    return switch (block) {
      case STORED -> 0;
      case HELD -> 1;
      case REFUSED -> 2;
      case NOT_STORED -> 3;
    };
  }
}
