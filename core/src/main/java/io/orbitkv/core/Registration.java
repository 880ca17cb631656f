package io.orbitkv.core;

import io.orbitkv.channel.Protocol;

/** Registered memory of one session. */
final class Registration {
  final int id;
  final int generation;
  final Session session;
  final Namespaces.Namespace namespace;
  final RegistrationRequest request;
  final int[] pages = new int[Protocol.MAX_GROUPS];
  boolean confirmed;
  boolean closing;
  int unsettled;

  Registration(
      int id,
      int generation,
      Session session,
      Namespaces.Namespace namespace,
      RegistrationRequest request) {
    this.id = id;
    this.generation = generation;
    this.session = session;
    this.namespace = namespace;
    this.request = request;
    for (RegistrationRequest.Group group : request.groups()) {
      pages[group.id()] = group.pages();
    }
  }

  /** The space of a group, or null when the group is not registered. */
  Namespaces.Space space(int group) {
    return pages[group] > 0 ? namespace.spaces[group] : null;
  }

  boolean sameRank(RegistrationRequest other) {
    return request.tpRank() == other.tpRank()
        && request.ppRank() == other.ppRank()
        && request.dcpRank() == other.dcpRank()
        && java.util.Arrays.equals(request.namespace(), other.namespace());
  }
}
