package io.orbitkv.core;

/** An engine instance: the sessions of its processes share leases and a budget. */
final class Instance {
  final String id;
  int sessions;
  long leaseBytes;

  Instance(String id) {
    this.id = id;
  }
}
