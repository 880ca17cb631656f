package io.orbitkv.core;

import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantTable;
import java.lang.foreign.MemorySegment;

/**
 * The deterministic state machine that owns all cache state of one Manager: pool, block index,
 * leases, registrations and grants. It belongs to one thread, the control thread, and has no clock,
 * thread, randomness or I/O: commands, session events and the time come in as arguments, effects go
 * out through {@link CoreOutput}. Times are nanoseconds of one monotonic clock.
 */
public final class CacheCore {
  /** Creates a core with an empty pool. */
  public CacheCore(CoreConfig config, long epochLow, CoreOutput output) {}

  /** Takes a free session slot, or returns -1 when all are live or retained. */
  public int reserveSlot() {
    return -1;
  }

  /** Gives back a slot whose session was never opened. */
  public void releaseSlot(int session) {}

  /**
   * Opens a session on a reserved slot.
   *
   * @param table the session's fresh grant memory
   * @param instanceId instance that the engine belongs to
   * @param pid process of the engine, for messages
   * @param mayPublish false when the end of the engine's process can not be observed
   */
  public void openSession(
      int session, GrantTable table, String instanceId, int pid, boolean mayPublish, long nowNs) {}

  /**
   * Registers memory of an instance.
   *
   * @return registration id and generation; it serves commands once {@link #confirmMappings} was
   *     called
   * @throws CoreException naming the value and the rule
   */
  public RegistrationId register(int session, RegistrationRequest request, long nowNs) {
    throw new UnsupportedOperationException();
  }

  /** Id and generation of a registration. */
  public record RegistrationId(int id, int generation) {}

  /** The engine has mapped the arenas: the registration is complete. */
  public void confirmMappings(int session, int registrationId, int generation) {}

  /**
   * Withdraws a registration; {@link CoreOutput#unregistered} follows, perhaps within this call.
   */
  public void unregister(int session, int registrationId, int generation, long nowNs) {}

  /**
   * Executes one command.
   *
   * @param ring request ring that it came from
   * @param command copied out of the ring
   * @param data private copy of the command's data, from offset 0
   * @param length bytes of the data
   */
  public void execute(
      int session, int ring, Command command, MemorySegment data, int length, long nowNs) {}

  /**
   * Takes in what engines have left in dirty records of a session; returns how much work was done.
   */
  public int pollGrants(int session, long nowNs) {
    return 0;
  }

  /**
   * Reads the state of every record in use by a session, dirty or not; returns how much work was
   * done.
   */
  public int recheckGrants(int session, long nowNs) {
    return 0;
  }

  /** The socket of the session has ended. */
  public void sessionLost(int session, long nowNs) {}

  /** The pidfd of the session's engine has reported exit, and it is evidence. */
  public void processExited(int session, long nowNs) {}

  /** Lets time pass: leases and queries that have become too old end. */
  public void tick(long nowNs) {}

  /** Closes admission: nothing more is claimed or granted. */
  public void beginStop(long nowNs) {}

  /** True when no operation is between Preparing and settled. */
  public boolean isQuiescent() {
    return true;
  }

  /** What the core holds and has done. */
  public CoreStats stats(long nowNs) {
    throw new UnsupportedOperationException();
  }
}
