package io.orbitkv.client;

import io.orbitkv.channel.Status;

/** One lookup of a {@link SteppedSession}. Belongs to one thread. */
public final class SteppedLookup {
  private final QueryCalls calls;
  private final QueryCalls.Call call;
  private final int hashes;
  private final long epoch;

  SteppedLookup(QueryCalls calls, QueryCalls.Call call, int hashes, long epoch) {
    this.calls = calls;
    this.call = call;
    this.hashes = hashes;
    this.epoch = epoch;
  }

  /** True when the answer is there. */
  public boolean isAnswered() {
    return call.isDone();
  }

  /** Status of the answer. */
  public Status status() {
    return Status.of(call.status);
  }

  /**
   * Reads an answer with status OK.
   *
   * @throws OrbitKvException when it does not fit the question
   */
  public LookupResult result() {
    LookupAnswer.requireWhole(call.data, call.dataLength, hashes);
    return LookupAnswer.read(call.data, epoch);
  }

  /** The answer has been read. */
  public void close() {
    calls.giveBack(call);
  }

  /** Gives up; false when the answer is there after all, which is to be read then. */
  public boolean tryAbandon() {
    if (!QueryCalls.abandon(call)) {
      return false;
    }
    calls.giveBack(call);
    return true;
  }
}
