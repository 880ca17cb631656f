package io.orbitkv.channel;

/**
 * State, part and generation of a grant record in one 64-bit word, so that every move is one
 * compare-and-set on all three.
 *
 * <pre>
 * bits    field
 *  0-3    state, code of {@link GrantState}
 *  4-15   part, 0 to 4095
 * 16-63   generation, 48 bits, grows with each use of the slot
 * </pre>
 *
 * An operation id is generation and slot: {@code generation << 10 | slot}.
 */
public final class GrantWord {
  private static final int PART_SHIFT = 4;
  private static final int GENERATION_SHIFT = 16;
  private static final int SLOT_BITS = 10;

  /** Parts run from 0 to this value. */
  public static final int MAX_PART = 4095;

  private GrantWord() {}

  /** Packs a word. */
  public static long of(long generation, int part, GrantState state) {
    return (generation << GENERATION_SHIFT) | ((long) part << PART_SHIFT) | state.code();
  }

  /**
   * The state, or null when the code is none: the word was not written by a well-behaved process.
   */
  public static GrantState state(long word) {
    return GrantState.of((int) (word & 15));
  }

  /** The part. */
  public static int part(long word) {
    return (int) (word >>> PART_SHIFT) & MAX_PART;
  }

  /** The generation. */
  public static long generation(long word) {
    return word >>> GENERATION_SHIFT;
  }

  /** The same generation and part in another state. */
  public static long withState(long word, GrantState state) {
    return (word & -16L) | state.code();
  }

  /** The operation id of a slot and generation. */
  public static long operationId(int slot, long generation) {
    return (generation << SLOT_BITS) | slot;
  }

  /** The slot of an operation id. */
  public static int slotOf(long operationId) {
    return (int) operationId & ((1 << SLOT_BITS) - 1);
  }

  /** The generation of an operation id. */
  public static long generationOf(long operationId) {
    return operationId >>> SLOT_BITS;
  }
}
