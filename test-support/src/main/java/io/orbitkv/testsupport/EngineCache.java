package io.orbitkv.testsupport;

import io.orbitkv.client.ClientConfig;
import io.orbitkv.client.ConnectionState;
import io.orbitkv.client.Fence;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.OrbitKvClient;
import io.orbitkv.client.PublishHandle;
import io.orbitkv.client.PublishItem;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.ReconnectingClient;
import io.orbitkv.client.ReconnectingRegistration;
import io.orbitkv.client.Registration;
import io.orbitkv.client.RegistrationSpec;
import io.orbitkv.client.RestoreHandle;
import io.orbitkv.client.RestoreItem;
import io.orbitkv.client.SaveHandle;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/** What a test engine does with its client, of either kind. */
interface EngineCache extends AutoCloseable {
  byte[] namespace();

  LookupResult lookup(LookupRequestSpec spec);

  boolean release(Lease lease);

  RestoreHandle restore(RestoreItem item);

  Publish publish(PublishItem item);

  void ping();

  String state();

  @Override
  void close();

  /**
   * A publish in progress.
   *
   * @param await waits; how it ended, or null when the time has passed
   * @param pagesFree whether the pages are the caller's again
   */
  record Publish(Function<Duration, PublishResult> await, BooleanSupplier pagesFree) {}

  /** One session, which ends with its Manager. */
  static EngineCache plain(ClientConfig config, RegistrationSpec spec) {
    OrbitKvClient client = OrbitKvClient.connect(config);
    return new Plain(client, client.register(spec));
  }

  /** A client that outlives Managers. */
  static EngineCache reconnecting(ClientConfig config, RegistrationSpec spec) {
    ReconnectingClient client = ReconnectingClient.connect(config);
    return new Reconnecting(client, client.register(spec));
  }

  /** {@link #plain}. */
  record Plain(OrbitKvClient client, Registration registration) implements EngineCache {
    @Override
    public byte[] namespace() {
      return registration.namespace();
    }

    @Override
    public LookupResult lookup(LookupRequestSpec spec) {
      return client.lookup(spec);
    }

    @Override
    public boolean release(Lease lease) {
      return client.release(lease);
    }

    @Override
    public RestoreHandle restore(RestoreItem item) {
      return registration.restore(List.of(item), Fence.done());
    }

    @Override
    public Publish publish(PublishItem item) {
      PublishHandle handle = registration.publish(List.of(item), Fence.done());
      return new Publish(handle::await, handle::pagesFree);
    }

    @Override
    public void ping() {
      client.ping();
    }

    @Override
    public String state() {
      return "connected=%s reconnects=0 generation=%d"
          .formatted(client.isOpen(), registration.generation());
    }

    @Override
    public void close() {
      client.close();
    }
  }

  /** {@link #reconnecting}. */
  record Reconnecting(ReconnectingClient client, ReconnectingRegistration registration)
      implements EngineCache {
    @Override
    public byte[] namespace() {
      return registration.namespace();
    }

    @Override
    public LookupResult lookup(LookupRequestSpec spec) {
      return client.lookup(spec);
    }

    @Override
    public boolean release(Lease lease) {
      return client.release(lease);
    }

    @Override
    public RestoreHandle restore(RestoreItem item) {
      return registration.restore(List.of(item), Fence.done());
    }

    @Override
    public Publish publish(PublishItem item) {
      SaveHandle handle = registration.save(List.of(item), Fence.done());
      return new Publish(bound -> await(handle, bound), handle::pagesFree);
    }

    /** As {@link SaveHandle#waitSave}; what has ended is charged no longer. */
    private static PublishResult await(SaveHandle handle, Duration bound) {
      Optional<PublishResult> result = handle.waitSave(bound);
      result.ifPresent(_ -> handle.close());
      return result.orElse(null);
    }

    @Override
    public void ping() {
      throw new UnsupportedOperationException("ping of a client that outlives Managers");
    }

    @Override
    public String state() {
      ConnectionState state = client.state();
      return "connected=%s reconnects=%d generation=%d"
          .formatted(state.connected(), state.reconnects(), registration.generation());
    }

    @Override
    public void close() {
      client.close();
    }
  }
}
