package io.orbitkv.core;

import io.orbitkv.channel.Status;
import java.util.ArrayList;
import java.util.List;

/** Registrations by id. A generation is never given twice by one core. */
final class Registrations {
  private static final int MAX_REGISTRATIONS = 4096;

  private final List<Registration> byId = new ArrayList<>();
  private int nextGeneration = 1;
  private int live;

  Registration add(Session session, Namespaces.Namespace namespace, RegistrationRequest request) {
    checkNotHeld(session, request);
    int id = byId.indexOf(null);
    if (id < 0) {
      if (byId.size() == MAX_REGISTRATIONS) {
        throw new CoreException(
            Status.LIMIT, "registrations=" + live + ", limit=" + MAX_REGISTRATIONS);
      }
      id = byId.size();
      byId.add(null);
    }
    Registration registration = new Registration(id, nextGeneration++, session, namespace, request);
    byId.set(id, registration);
    session.registrations.add(registration);
    live++;
    return registration;
  }

  private void checkNotHeld(Session session, RegistrationRequest request) {
    for (Registration other : byId) {
      boolean same =
          other != null
              && other.session.instance == session.instance
              && !other.session.lost
              && other.sameRank(request);
      if (same) {
        throw new CoreException(
            Status.INSTANCE_HELD,
            "instance=\""
                + session.instance.id
                + "\" with this rank is registered by pid="
                + other.session.pid);
      }
    }
  }

  /** The registration that serves commands of the session under this id and generation, or null. */
  Registration find(Session session, int id, int generation) {
    Registration registration = get(session, id, generation);
    return registration == null || !registration.confirmed || registration.closing
        ? null
        : registration;
  }

  /** The session's registration of this id and generation, whatever its state, or null. */
  Registration get(Session session, int id, int generation) {
    Registration registration = id >= 0 && id < byId.size() ? byId.get(id) : null;
    boolean same =
        registration != null
            && registration.session == session
            && registration.generation == generation;
    return same ? registration : null;
  }

  void remove(Registration registration) {
    byId.set(registration.id, null);
    registration.session.registrations.remove(registration);
    live--;
  }

  int live() {
    return live;
  }
}
