package io.orbitkv.client;

import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.StateDescriptor;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.GroupFields;
import io.orbitkv.channel.proto.Register;
import io.orbitkv.channel.proto.StateFields;

/**
 * What an engine registers, checked and ready to be sent to any Manager.
 *
 * @param spec as the engine wrote it
 * @param groups memory of each group, by group id; null for a group that is not registered
 * @param state identity of the state with its groups
 * @param pages pages of each group of {@code state}, in its order
 */
@SuppressWarnings("ArrayRecordComponent") // made once, never changed
record RegistrationForm(
    RegistrationSpec spec, GroupMemory[] groups, StateFields state, Iterable<Integer> pages) {

  /**
   * Checks a specification.
   *
   * @throws OrbitKvException naming the value and the rule
   */
  static RegistrationForm of(RegistrationSpec spec) {
    GroupMemory[] groups = new GroupMemory[Protocol.MAX_GROUPS];
    StateFields.Builder state = spec.state().toBuilder().clearGroups();
    for (GroupSpec group : spec.groups()) {
      if (group.id() < 0 || group.id() >= groups.length || groups[group.id()] != null) {
        throw new OrbitKvException(
            Status.INVALID,
            "group=" + group.id() + ", allowed=0.." + (groups.length - 1) + ", each once");
      }
      GroupMemory memory = GroupMemory.of(group, true);
      groups[group.id()] = memory;
      state.addGroups(
          GroupFields.newBuilder()
              .setId(group.id())
              .setKind(group.kind().wireName())
              .setWindowTokens(group.windowTokens())
              .setLayers(memory.layers)
              .setBlockBytes(memory.blockBytes));
    }
    return new RegistrationForm(
        spec,
        groups,
        state.build(),
        spec.groups().stream().map(group -> groups[group.id()].pages).toList());
  }

  /** Checks the identity of the state as a Manager would; throws as {@link #of}. */
  RegistrationForm checkState() {
    try {
      StateDescriptor.check(state);
      return this;
    } catch (ProtocolException e) {
      throw new OrbitKvException(e.status(), e.getMessage(), e);
    }
  }

  /** Digest of the state, as every Manager makes it. */
  byte[] namespace() {
    return StateDescriptor.digest(state);
  }

  /** The frame's content, without the session token. */
  Register.Builder frame() {
    return Register.newBuilder()
        .setRestoreOnly(spec.restoreOnly())
        .setDevice("host")
        .setState(state)
        .addAllGroupPages(pages);
  }
}
