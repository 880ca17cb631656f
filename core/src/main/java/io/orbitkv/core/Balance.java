package io.orbitkv.core;

/**
 * Counts blocks, bytes and pins again, from the rows and from those who hold them, and compares
 * with what is kept from step to step. Looks at every row: for simulators and tests.
 */
final class Balance {
  private final BlockStore store;
  private final BlockIndex index;
  private final Leases leases;
  private final Session[] sessions;
  private final boolean isComplete;
  private final int[] pins;

  /**
   * A count of one moment.
   *
   * @param isComplete whether leases and operations are all that pin rows
   */
  Balance(BlockStore store, Leases leases, Session[] sessions, boolean isComplete) {
    this.store = store;
    this.index = store.index();
    this.leases = leases;
    this.sessions = sessions;
    this.isComplete = isComplete;
    this.pins = new int[index.highWater()];
  }

  /**
   * Compares.
   *
   * @throws IllegalStateException naming the first difference
   */
  void require() {
    requireLeases();
    for (Session session : sessions) {
      if (session != null) {
        requireSession(session);
      }
    }
    requireRows();
  }

  private void requireLeases() {
    long bytes = 0;
    int live = 0;
    for (Lease lease : leases.places()) {
      if (lease.isLive()) {
        bytes += lease.bytes;
        live++;
        for (int i = 0; i < lease.count; i++) {
          pins[lease.rows[i]]++;
        }
      }
    }
    require(leases.bytes() == bytes, "lease bytes", leases.bytes(), bytes);
    require(leases.live() == live, "leases", leases.live(), live);
  }

  private void requireSession(Session session) {
    int unsettled = 0;
    long metadata = 0;
    int units = 0;
    for (Operation op : session.operations) {
      if (op != null && !op.isSettled()) {
        unsettled++;
        metadata += op.metadataBytes;
        units += op.planOffset == Operation.NO_PLAN ? 0 : PlanBank.units(op.partEntries);
        addOperation(op);
      }
    }
    require(session.unsettled == unsettled, "operations", session.unsettled, unsettled);
    require(session.metadataBytes == metadata, "metadata", session.metadataBytes, metadata);
    require(session.bank.usedUnits() == units, "plan space", session.bank.usedUnits(), units);
  }

  private void addOperation(Operation op) {
    if (op.phase == Operation.Phase.QUARANTINED) {
      return;
    }
    for (int i = 0; i < op.count; i++) {
      int code = op.rows[i];
      if (!op.publish || Operation.isOwned(code)) {
        pins[code]++;
      } else if (Operation.isHeld(code)) {
        pins[Operation.heldRow(code)]++;
      }
    }
    for (int s = 0; s < op.sectionCount; s++) {
      if (op.parent(s) >= 0) {
        pins[op.parent(s)]++;
      }
    }
  }

  private void requireRows() {
    long used = 0;
    long residentBytes = 0;
    long resident = 0;
    long unsealed = 0;
    long refs = 0;
    for (int row = 0; row < pins.length; row++) {
      int state = index.state(row);
      requirePins(row);
      if (state == BlockIndex.FREE) {
        continue;
      }
      int bytes = store.spaceOf(row).size.slotBytes;
      int owner = store.pool().rowAt(index.slab(row), index.slot(row));
      require(owner == row, "row of the slot of row " + row, owner, row);
      used += bytes;
      refs += index.pins(row);
      residentBytes += state == BlockIndex.RESIDENT ? bytes : 0;
      resident += state == BlockIndex.RESIDENT ? 1 : 0;
      unsealed += state == BlockIndex.UNSEALED ? 1 : 0;
    }
    require(store.pool().usedBytes() == used, "pool used", store.pool().usedBytes(), used);
    require(
        store.residentBytes() == residentBytes,
        "resident bytes",
        store.residentBytes(),
        residentBytes);
    require(store.residentBlocks() == resident, "resident", store.residentBlocks(), resident);
    require(store.unsealedBlocks() == unsealed, "unsealed", store.unsealedBlocks(), unsealed);
    require(store.pinRefs() == refs, "pins", store.pinRefs(), refs);
  }

  private void requirePins(int row) {
    int kept = index.state(row) == BlockIndex.FREE ? 0 : index.pins(row);
    boolean agrees = isComplete ? kept == pins[row] : kept >= pins[row];
    require(agrees, "pins of row " + row, kept, pins[row]);
  }

  private static void require(boolean condition, String what, long kept, long counted) {
    if (!condition) {
      throw new IllegalStateException(what + ": kept=" + kept + ", counted=" + counted);
    }
  }
}
