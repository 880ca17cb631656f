package io.orbitkv.manager;

import com.google.protobuf.Descriptors.FieldDescriptor;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.core.RegistrationRequest;
import java.util.HexFormat;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * States and bytes of the live registrations, for the status only: what decides about sharing is
 * their digest, and the core keeps no more. Thread-safe.
 */
final class RegisteredStates {
  /** One registration; ordered by session. */
  private record Key(int slot, int registration) implements Comparable<Key> {
    @Override
    public int compareTo(Key other) {
      int bySlot = Integer.compare(slot, other.slot);
      return bySlot != 0 ? bySlot : Integer.compare(registration, other.registration);
    }
  }

  private record Entry(String namespace, long bytes, StateFields state) {}

  private final ConcurrentNavigableMap<Key, Entry> states = new ConcurrentSkipListMap<>();

  /** Adds a registration. */
  void add(int slot, int registration, RegistrationRequest request, StateFields state) {
    String namespace = HexFormat.of().formatHex(request.namespace());
    states.put(new Key(slot, registration), new Entry(namespace, request.pageBytes(), state));
  }

  /** Forgets a registration. */
  void remove(int slot, int registration) {
    states.remove(new Key(slot, registration));
  }

  /** Forgets all registrations of a session. */
  void removeAll(int slot) {
    ofSlot(slot).clear();
  }

  private ConcurrentNavigableMap<Key, Entry> ofSlot(int slot) {
    return states.subMap(new Key(slot, 0), true, new Key(slot, Integer.MAX_VALUE), true);
  }

  /**
   * Writes one object for each registration of a session: its namespace, the bytes of its pages,
   * and every field of its state.
   */
  void put(ArrayNode array, int slot) {
    for (Entry entry : ofSlot(slot).values()) {
      ObjectNode node = array.addObject();
      node.put("namespace", entry.namespace());
      node.put("registered_bytes", entry.bytes());
      for (FieldDescriptor field : StateFields.getDescriptor().getFields()) {
        if (!field.isRepeated()) {
          node.put(field.getName(), String.valueOf(entry.state().getField(field)));
        }
      }
      entry
          .state()
          .getGroupsList()
          .forEach(group ->
              node.put(
                  "group_" + group.getId(),
                  group.getKind()
                      + ", layers="
                      + group.getLayers()
                      + ", block bytes="
                      + group.getBlockBytes()));
    }
  }
}
