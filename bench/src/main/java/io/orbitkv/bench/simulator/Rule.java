package io.orbitkv.bench.simulator;

/** What must hold. */
public enum Rule {
  /** A restored block holds the bytes of its key. */
  BYTES("a restored block holds its own bytes"),
  /** Blocks of a grant stay while the engine may touch them. */
  SOURCES("no block of a grant is given up while it is Active"),
  /** Nothing is granted any more. */
  NEVER("nothing is granted once its session or registration is over"),
  /** A range that is written is in no other plan. */
  RANGES("no range that is written is in another plan"),
  /** The device and the pool agree who may use memory. */
  DEVICE("no memory is used again while the device reads it"),
  /** Nothing is visible before its last part has drained. */
  VISIBLE("nothing is visible before it is whole"),
  /** Pages are not free while Active. */
  PAGES("no page is free while its operation is Active"),
  /** Leases, pins and bytes add up. */
  BALANCE("leases, pins and bytes add up"),
  /** Each operation ends. */
  TERMINAL("every operation ends within its bound"),
  /** All is given back. */
  BUDGETS("every budget is zero at the end"),
  /** An answer fits what happened. */
  ANSWERS("an answer says what happened"),
  /** A well-behaved engine is not accused. */
  PROTOCOL("no well-behaved engine breaks the protocol"),
  /** Nothing throws. */
  FAULTS("nothing throws");

  private final String text;

  Rule(String text) {
    this.text = text;
  }

  /** The rule in words. */
  public String text() {
    return text;
  }
}
