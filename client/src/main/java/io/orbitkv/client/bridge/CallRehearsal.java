package io.orbitkv.client.bridge;

import io.orbitkv.channel.Protocol;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.ReconnectingClient;
import java.nio.ByteBuffer;

/**
 * What {@link io.orbitkv.client.Rehearsal} leaves out: calls of the bridge as a caller encodes
 * them, and round trips to the Manager, which takes part only as far as it counts nothing.
 */
final class CallRehearsal {
  /** As in {@code Rehearsal}: the JVM's first compiler waits for 200 calls. */
  private static final int ROUNDS = 300;

  private static final int HASHES = 32;
  private static final int HASH_BYTES = 32;
  private static final int CALL_BYTES = 4096;

  private final ReconnectingClient live;
  private final ByteBuffer call = ByteBuffer.allocateDirect(CALL_BYTES);

  private CallRehearsal(ReconnectingClient live) {
    this.live = live;
  }

  /** Plays everything; without a Manager the round trips end at once. */
  static void play(ReconnectingClient live) {
    CallRehearsal rehearsal = new CallRehearsal(live);
    for (int i = 0; i < ROUNDS; i++) {
      rehearsal.lookup();
      rehearsal.restore();
      rehearsal.save();
    }
  }

  /** A lookup for a hint: it leases nothing. */
  private void lookup() {
    begin(0, 0, 0, 1, HASH_BYTES, HASHES);
    LookupRequestSpec asked = OperationCalls.lookup(new CallBuffer(call));
    LookupRequestSpec hint =
        new LookupRequestSpec(
            asked.namespaces(), 1, asked.hashes(), LookupRequestSpec.Mode.CANDIDATES, 0, 0, 0);
    OperationCalls.answer(live.lookup(hint), new CallBuffer(call));
  }

  /** A lease that the Manager never gave is given back, alone and as the item of a restore. */
  private void restore() {
    begin(1, 0, live.epochLow(), 0, 0, 1, 0, 1, 0);
    Lease none = OperationCalls.restoreItems(new CallBuffer(call)).getFirst().lease();
    live.giveBack(none);
  }

  private void save() {
    begin(1, 0, 0, HASH_BYTES, 1, 0);
    OperationCalls.saveItems(new CallBuffer(call));
  }

  /** Writes numbers, and zeros behind them. */
  private void begin(long... numbers) {
    CallBuffer buffer = new CallBuffer(call);
    for (long number : numbers) {
      buffer.put(number);
    }
    for (int i = 0; i < Protocol.NAMESPACE_BYTES / Long.BYTES; i++) {
      buffer.put(0);
    }
  }
}
