package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.util.List;

/**
 * Registered memory of an engine that outlives the Manager: each Manager that comes back gets it
 * again, with a generation of its own. Thread-safe.
 */
public final class ReconnectingRegistration implements AutoCloseable {
  private final ManagerKeeper keeper;
  private final RegistrationForm form;
  private final byte[] namespace;

  /** With the Manager of now; null while there is none. */
  private volatile Registration live;

  /** With the Manager of now or the last one; its operations may still run. Guarded by this. */
  private Registration latest;

  private volatile boolean closed;

  ReconnectingRegistration(ManagerKeeper keeper, RegistrationForm form) {
    this.keeper = keeper;
    this.form = form;
    this.namespace = form.namespace();
  }

  RegistrationForm form() {
    return form;
  }

  synchronized void registered(Registration registration) {
    latest = registration;
    live = registration;
  }

  void managerLost() {
    live = null;
  }

  /** Digest of the state, for lookups; the same at every Manager. */
  public byte[] namespace() {
    return namespace.clone();
  }

  /** True while a Manager has it: restores and saves are taken. */
  public boolean isRegistered() {
    return live != null;
  }

  /** Generation with the Manager of now; 0 while none has it. */
  public int generation() {
    Registration registration = live;
    return registration == null ? 0 : registration.generation();
  }

  /**
   * Begins to restore the blocks of leases, as {@link Registration#restore}.
   *
   * @throws ManagerUnavailableException at once while no Manager has the registration
   * @throws OrbitKvException when an item breaks a rule, as {@link Status#EPOCH_MISMATCH} for a
   *     lease of an earlier Manager, or nothing more can be submitted
   */
  public RestoreHandle restore(List<RestoreItem> items, Fence fence) {
    requireOpen();
    Registration registration = live;
    if (registration == null) {
      throw new ManagerUnavailableException("restore: " + keeper.absence(), null);
    }
    try {
      return registration.restore(items, fence);
    } catch (OrbitKvException e) {
      if (isLoss(registration, e)) {
        keeper.look();
        throw new ManagerUnavailableException("restore: " + e.getMessage(), e);
      }
      throw e;
    }
  }

  /**
   * Begins to publish blocks, as {@link Registration#publish}.
   *
   * @throws SaveNotSubmittedException at once while no Manager has the registration, or nothing
   *     more can be submitted
   * @throws OrbitKvException when an item breaks a rule
   */
  public SaveHandle save(List<PublishItem> items, Fence fence) {
    requireOpen();
    Registration registration = live;
    if (registration == null) {
      throw new SaveNotSubmittedException(Status.NOT_READY, keeper.absence());
    }
    try {
      return registration.save(items, fence);
    } catch (OrbitKvException e) {
      if (!isLoss(registration, e)) {
        throw e;
      }
      keeper.look();
      throw e instanceof SaveNotSubmittedException
          ? e
          : new SaveNotSubmittedException(Status.SESSION_ENDED, e.getMessage());
    }
  }

  /** Whether a call failed because the Manager went away while it was made. */
  private boolean isLoss(Registration used, OrbitKvException e) {
    return e.status() == Status.SESSION_ENDED
        || (e.status() == Status.UNKNOWN_REGISTRATION && live != used);
  }

  private void requireOpen() {
    if (closed) {
      throw new OrbitKvException(Status.UNKNOWN_REGISTRATION, "registration is closed");
    }
  }

  /**
   * Withdraws the registration: nothing more is admitted, what is pending is cancelled, and this
   * returns when the pages of every operation are free, those of a Manager that is gone included.
   * Idempotent; may be called again after a time-out.
   *
   * @throws OrbitKvTimeoutException naming what it waited for
   */
  @Override
  public void close() {
    closed = true;
    keeper.forget(this);
    live = null;
    Registration registration;
    synchronized (this) {
      registration = latest;
    }
    if (registration != null) {
      registration.close();
    }
  }
}
