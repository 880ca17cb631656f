package io.orbitkv.client;

import io.orbitkv.channel.proto.StateFields;
import java.util.List;

/**
 * What an engine registers.
 *
 * @param state identity of the state; its groups are filled in from {@code groups}
 * @param groups memory of each group
 * @param restoreOnly true when the engine never publishes: it then maps the pool read-only
 */
public record RegistrationSpec(StateFields state, List<GroupSpec> groups, boolean restoreOnly) {
  /** Copies the list. */
  public RegistrationSpec {
    groups = List.copyOf(groups);
  }
}
