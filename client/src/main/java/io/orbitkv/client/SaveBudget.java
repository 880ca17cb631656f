package io.orbitkv.client;

import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What all publishes of a process may hold at once: operations, and the bytes that describe them.
 * Thread-safe, without locks.
 */
final class SaveBudget {
  /** Most operations. */
  static final int MAX_OPERATIONS = 1024;

  /** Most bytes. */
  static final long MAX_BYTES = 32L << 20;

  /** The budget of this process. */
  static final SaveBudget PROCESS = new SaveBudget();

  private static final long FIXED_BYTES = 1024;

  /** Page in the command, page and group in the target, and result. */
  private static final long BYTES_A_BLOCK = 3 * Integer.BYTES + 1;

  private static final int OPERATION_SHIFT = 40;
  private static final long ONE_OPERATION = 1L << OPERATION_SHIFT;
  private static final long BYTES_MASK = ONE_OPERATION - 1;

  /** Operations above {@link #OPERATION_SHIFT}, bytes below. */
  private final AtomicLong used = new AtomicLong();

  /** Bytes that a publish is charged with. */
  static long bytes(int blocks, int hashBytes, int items) {
    return FIXED_BYTES
        + (long) blocks * (hashBytes + BYTES_A_BLOCK)
        + (long) items * Protocol.MAX_HASH_BYTES;
  }

  /**
   * Charges one operation.
   *
   * @param bytes of {@link #bytes}
   * @param owners how many have to let go of it before it is given back
   * @throws SaveNotSubmittedException with {@link Status#LIMIT}, naming the limit
   */
  Charge charge(long bytes, int owners) {
    while (true) {
      long before = used.get();
      long operations = (before >>> OPERATION_SHIFT) + 1;
      long sum = (before & BYTES_MASK) + bytes;
      if (operations > MAX_OPERATIONS || sum > MAX_BYTES) {
        throw new SaveNotSubmittedException(
            Status.LIMIT,
            "publishes of this process, held handles included: operations="
                + operations
                + ", limit="
                + MAX_OPERATIONS
                + ", bytes="
                + sum
                + ", limit="
                + MAX_BYTES);
      }
      if (used.compareAndSet(before, before + ONE_OPERATION + bytes)) {
        return new Charge(this, bytes, owners);
      }
    }
  }

  /** Operations that are charged. */
  int operations() {
    return (int) (used.get() >>> OPERATION_SHIFT);
  }

  /** Bytes that are charged. */
  long bytes() {
    return used.get() & BYTES_MASK;
  }

  /** Charge of one operation, given back when its last owner lets go. */
  static final class Charge {
    private final SaveBudget budget;
    private final long bytes;
    private final AtomicInteger owners;

    private Charge(SaveBudget budget, long bytes, int owners) {
      this.budget = budget;
      this.bytes = bytes;
      this.owners = new AtomicInteger(owners);
    }

    /** One owner lets go; to be called once by each. */
    void release() {
      if (owners.decrementAndGet() == 0) {
        budget.used.addAndGet(-(ONE_OPERATION + bytes));
      }
    }
  }
}
