package io.orbitkv.client;

import io.orbitkv.channel.Status;
import io.orbitkv.client.LookupResult.Outcome;
import java.util.List;
import java.util.Map;

/**
 * A client for engines that must go on whether a Manager is there or not. Thread-safe.
 *
 * <p>While none is there lookups find nothing, restores and saves fail typed at once, and the
 * client tries to connect, 100 ms after a loss and then at doubling intervals up to 5 s, and as
 * soon as another socket lies at its path. The loss is logged once. Copies in progress finish on
 * the memory of the Manager that is gone, which is unmapped before that of another one is mapped;
 * leases end with their Manager. A Manager that speaks another version is refused, said once with
 * both versions, and tried again.
 */
public final class ReconnectingClient implements AutoCloseable {
  private static final LookupResult NOTHING =
      new LookupResult(Outcome.MISS, List.of(), List.of(), Map.of());

  private final ManagerKeeper keeper;

  private ReconnectingClient(ManagerKeeper keeper) {
    this.keeper = keeper;
  }

  /**
   * Connects when a Manager is there, within the bound of a call, and otherwise later. Whatever an
   * attempt meets is in {@link #state()}.
   */
  public static ReconnectingClient connect(ClientConfig config) {
    return connect(new ManagerKeeper(config));
  }

  static ReconnectingClient connect(ManagerKeeper keeper) {
    keeper.start();
    return new ReconnectingClient(keeper);
  }

  /** How this client stands. Waits for nothing, whatever other calls wait for. */
  public ConnectionState state() {
    return keeper.state();
  }

  /**
   * Registers memory, now or as soon as there is a Manager, and again with each that follows.
   *
   * @throws OrbitKvException naming the value and the rule, or the holder of the instance; nothing
   *     is registered then
   */
  public ReconnectingRegistration register(RegistrationSpec spec) {
    requireOpen();
    ReconnectingRegistration registration =
        new ReconnectingRegistration(keeper, RegistrationForm.of(spec).checkState());
    keeper.add(registration);
    return registration;
  }

  /**
   * Looks blocks up. Without a Manager the answer is a miss that names no group.
   *
   * @throws OrbitKvException when the request breaks a rule, the query was superseded, or a Manager
   *     that is there does not answer in time
   */
  public LookupResult lookup(LookupRequestSpec spec) {
    requireOpen();
    OrbitKvClient session = keeper.client();
    try {
      return session == null ? NOTHING : session.lookup(spec);
    } catch (OrbitKvException e) {
      requireLoss(e);
      return NOTHING;
    }
  }

  /**
   * Looks up the prefix of group 0 in one namespace and allocates nothing; without a Manager it
   * finds nothing.
   *
   * @param lease receives id, number of blocks and Manager epoch of the lease, the parts of a
   *     {@link Lease}; all 0 for none
   * @return blocks before the first missing one
   */
  public int lookupPrefix(byte[] namespace, BlockHashes hashes, long[] lease) {
    requireOpen();
    OrbitKvClient session = keeper.client();
    lease[0] = 0;
    lease[1] = 0;
    lease[2] = 0;
    try {
      if (session == null) {
        return 0;
      }
      int found = session.lookupPrefix(namespace, hashes, lease);
      lease[2] = lease[0] == 0 ? 0 : session.epochLow();
      return found;
    } catch (OrbitKvException e) {
      requireLoss(e);
      return 0;
    }
  }

  /** Gives a lease back; false when it had ended already, as with its Manager. */
  public boolean release(Lease lease) {
    requireOpen();
    OrbitKvClient session = keeper.client();
    try {
      return session != null && session.release(lease);
    } catch (OrbitKvException e) {
      requireLoss(e);
      return false;
    }
  }

  /** Gives a lease back without waiting for the answer; does nothing when its Manager is gone. */
  public void giveBack(Lease lease) {
    requireOpen();
    OrbitKvClient session = keeper.client();
    if (session != null) {
      session.giveBack(lease);
    }
  }

  /** As {@link OrbitKvClient#cancelQuery}; without a Manager there is nothing to cancel. */
  public void cancelQuery(long queryId, int revision) {
    requireOpen();
    OrbitKvClient session = keeper.client();
    try {
      if (session != null) {
        session.cancelQuery(queryId, revision);
      }
    } catch (OrbitKvException e) {
      requireLoss(e);
    }
  }

  /** False while there is no Manager, or one that can not observe the end of this process. */
  public boolean mayPublish() {
    OrbitKvClient session = keeper.client();
    return session != null && session.mayPublish();
  }

  /** Low half of the Manager epoch; 0 while there is no Manager. */
  public long epochLow() {
    OrbitKvClient session = keeper.client();
    return session == null ? 0 : session.epochLow();
  }

  /**
   * State of the Manager.
   *
   * @throws ManagerUnavailableException while there is none
   */
  public Health health() {
    return session("health").health();
  }

  /**
   * What the Manager holds, as one JSON object.
   *
   * @throws ManagerUnavailableException while there is none
   */
  public String status() {
    return session("status").status();
  }

  private OrbitKvClient session(String call) {
    requireOpen();
    OrbitKvClient session = keeper.client();
    if (session == null) {
      throw new ManagerUnavailableException(call + ": " + keeper.absence(), null);
    }
    return session;
  }

  /**
   * What the publishes of this client are at, those of a Manager that is gone included. Waits for
   * nothing, whatever other calls wait for.
   */
  public PublishActivity publishActivity() {
    return keeper.publishActivity();
  }

  private void requireLoss(OrbitKvException e) {
    if (e.status() != Status.SESSION_ENDED) {
      throw e;
    }
    keeper.look();
  }

  private void requireOpen() {
    if (keeper.isClosing()) {
      throw new OrbitKvException(Status.SESSION_ENDED, "client is closed");
    }
  }

  /**
   * Ends the session: nothing more is admitted, what is pending is cancelled, and memory is
   * unmapped when no copy uses it any longer. Waits a bounded time, at most some bounds of a call;
   * what it did not wait for is logged. Idempotent; an interrupt does not cut it short.
   */
  @Override
  public void close() {
    keeper.close();
  }
}
