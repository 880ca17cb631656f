package io.orbitkv.core;

/** Right to restore given rows once; holds a pin on each. Objects are used again. */
final class Lease {
  final int place;
  long id;
  Session asker;
  Instance instance;
  Namespaces.Space space;
  int[] rows;
  int count;
  long bytes;
  long createdNs;
  long deadlineNs;
  long queryId;

  /** Number of the query among all of this core; its id may come again. */
  long querySerial;

  int revision;

  /** Neighbours among the leases of the same asker. */
  Lease newer;

  Lease older;

  /** Number of the latest claim that named it. */
  long claim;

  Lease(int place) {
    this.place = place;
  }

  boolean isLive() {
    return asker != null;
  }
}
