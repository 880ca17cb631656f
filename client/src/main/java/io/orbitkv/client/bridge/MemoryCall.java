package io.orbitkv.client.bridge;

import com.google.protobuf.TextFormat;
import io.orbitkv.channel.GroupKind;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.StateDescriptor;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.GroupFields;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.client.GroupSpec;
import io.orbitkv.client.OrbitKvException;
import io.orbitkv.client.RegistrationSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Reads what is to be registered: a state as text, and the memory of its groups. */
final class MemoryCall {
  private static final int SEGMENT_BYTES = 2 * Long.BYTES;
  private static final int LAYER_BYTES = 5 * Long.BYTES;

  private MemoryCall() {}

  /**
   * A state that {@link StateDescriptor#check} accepts.
   *
   * @param text in the text format of protobuf
   */
  static StateFields state(String text) {
    try {
      StateFields state = TextFormat.parse(text, StateFields.class);
      StateDescriptor.check(state);
      return state;
    } catch (TextFormat.ParseException e) {
      throw new OrbitKvException(Status.INVALID, "descriptor: " + e.getMessage(), e);
    } catch (ProtocolException e) {
      throw new OrbitKvException(e.status(), e.getMessage(), e);
    }
  }

  /**
   * What to register.
   *
   * @param call for each group of the state: pages, number of layers, and for each of these address
   *     and bytes of its memory, offset of page 0, bytes from page to page, number of segments, and
   *     offset and bytes of each of these
   */
  static RegistrationSpec read(StateFields state, CallBuffer call, boolean restoreOnly) {
    List<GroupSpec> groups = new ArrayList<>();
    for (GroupFields fields : state.getGroupsList()) {
      GroupSpec group = group(fields, call);
      if (group.layers().size() != fields.getLayers()
          || group.blockBytes() != fields.getBlockBytes()) {
        throw new OrbitKvException(
            Status.INVALID,
            "group=%d: the memory has layers=%d, block bytes=%d; the state says layers=%d, block bytes=%d"
                .formatted(
                    fields.getId(),
                    group.layers().size(),
                    group.blockBytes(),
                    fields.getLayers(),
                    fields.getBlockBytes()));
      }
      groups.add(group);
    }
    return new RegistrationSpec(state, groups, restoreOnly);
  }

  private static GroupSpec group(GroupFields fields, CallBuffer call) {
    int pages = call.number("pages", 1, Integer.MAX_VALUE);
    int count = call.count("layers", LAYER_BYTES);
    List<GroupSpec.Layer> layers = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      layers.add(layer(call));
    }
    return new GroupSpec(
        fields.getId(), GroupKind.of(fields.getKind()), fields.getWindowTokens(), pages, layers);
  }

  @SuppressWarnings("restricted") // the engine's own memory, which it keeps until the end
  private static GroupSpec.Layer layer(CallBuffer call) {
    MemorySegment memory = MemorySegment.ofAddress(call.number()).reinterpret(call.number());
    long offset = call.number();
    long stride = call.number();
    int count = call.count("segments", SEGMENT_BYTES);
    List<GroupSpec.Segment> segments = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      segments.add(new GroupSpec.Segment(call.number(), call.number()));
    }
    return new GroupSpec.Layer(memory, offset, stride, segments);
  }
}
