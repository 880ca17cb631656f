package io.orbitkv.core;

import io.orbitkv.channel.MissReason;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Says where blocks are, for people. Off the hot path. */
final class Explanations {
  private final BlockStore store;
  private final Namespaces namespaces;
  private final SsdTier ssd; // null without one
  private final Session[] sessions;

  Explanations(BlockStore store, Namespaces namespaces, SsdTier ssd, Session[] sessions) {
    this.sessions = sessions;
    this.store = store;
    this.namespaces = namespaces;
    this.ssd = ssd;
  }

  /** One entry a group of the namespace; one in all when the namespace is not known. */
  List<Whereabouts> explain(byte[] digest, byte[] hash) {
    MemorySegment data = MemorySegment.ofArray(hash);
    Namespaces.Namespace namespace = namespaces.find(MemorySegment.ofArray(digest), 0);
    if (namespace == null) {
      return List.of(nowhere(-1, -1, data));
    }
    if (namespace.hashBytes != hash.length) {
      throw new CoreException(
          Status.INVALID,
          "hash bytes=" + hash.length + ", this namespace has=" + namespace.hashBytes);
    }
    List<Whereabouts> all = new ArrayList<>();
    for (Namespaces.Space space : namespace.spaces) {
      if (space != null) {
        all.add(explain(space, data));
      }
    }
    return all;
  }

  private Whereabouts explain(Namespaces.Space space, MemorySegment data) {
    int bytes = (int) data.byteSize();
    int row = store.find(space, data, 0, bytes);
    int onSsd = ssd == null ? -1 : ssd.map().find(space.id, data, 0, bytes);
    if (row < 0 && onSsd < 0) {
      return isBeingPublished(space, data)
          ? new Whereabouts(
              space.group, false, -1, -1, 0, true, false, false, false, -1, -1, MissReason.NONE, -1)
          : nowhere(space.group, space.id, data);
    }
    return new Whereabouts(
        space.group,
        row >= 0,
        row < 0 ? -1 : store.arena(row),
        row < 0 ? -1 : store.offset(row),
        row < 0 ? 0 : store.pins(row),
        false,
        onSsd >= 0,
        onSsd >= 0 && ssd.map().load(onSsd) != 0,
        onSsd >= 0 && ssd.find(space, data, 0, bytes) >= 0,
        onSsd < 0 ? -1 : ssd.map().segment(onSsd),
        onSsd < 0 ? -1 : ssd.map().page(onSsd),
        MissReason.NONE,
        -1);
  }

  private Whereabouts nowhere(int group, int spaceId, MemorySegment data) {
    int bytes = (int) data.byteSize();
    MissReason reason = store.missReason(spaceId, data, 0, bytes);
    int age = reason == MissReason.NEVER_STORED ? -1 : store.missAgeSeconds(data, 0, bytes);
    return new Whereabouts(
        group, false, -1, -1, 0, false, false, false, false, -1, -1, reason, age);
  }

  private boolean isBeingPublished(Namespaces.Space space, MemorySegment hash) {
    for (Session session : sessions) {
      for (int i = 0; session != null && i < session.operations.length; i++) {
        Operation operation = session.operations[i];
        if (operation != null
            && operation.publish
            && !operation.isSettled()
            && names(operation, space, hash)) {
          return true;
        }
      }
    }
    return false;
  }

  private boolean names(Operation operation, Namespaces.Space space, MemorySegment hash) {
    for (int i = 0; i < operation.count; i++) {
      int row = operation.rows[i];
      if (Operation.isOwned(row)
          && store.spaceOf(row) == space
          && MemorySegment.mismatch(
                  store.hashes(),
                  BlockIndex.hashAt(row),
                  BlockIndex.hashAt(row) + hash.byteSize(),
                  hash,
                  0,
                  hash.byteSize())
              < 0) {
        return true;
      }
    }
    return false;
  }
}
