/**
 * The engine's side of OrbitKV for JVM engines: connect to the Manager of this host, register KV
 * memory, look blocks up, restore them into the engine's pages and publish them from there.
 *
 * <p>{@link io.orbitkv.client.OrbitKvClient} is one session. {@link io.orbitkv.client.Registration}
 * is registered memory, described by {@link io.orbitkv.client.RegistrationSpec} and {@link
 * io.orbitkv.client.GroupSpec}. {@link io.orbitkv.client.LookupResult} carries {@link
 * io.orbitkv.client.Lease}s, which a {@link io.orbitkv.client.RestoreHandle} consumes; a {@link
 * io.orbitkv.client.PublishHandle} stores blocks. Copies run on the client's own threads, or on a
 * caller that waits. Every wait has a bound, and every failure is an {@link
 * io.orbitkv.client.OrbitKvException} with a status.
 *
 * <p>{@link io.orbitkv.client.ReconnectingClient} is the same for engines that outlive Managers:
 * its {@link io.orbitkv.client.ReconnectingRegistration} is registered with each Manager in turn,
 * and gives {@link io.orbitkv.client.SaveHandle}s. {@link io.orbitkv.client.ManagerKeeper} is the
 * thread behind it.
 *
 * <p>Inside, {@link io.orbitkv.client.EngineSession} and {@link io.orbitkv.client.EngineOperation}
 * are the state machine, without threads and system calls; {@link io.orbitkv.client.CopyAgents},
 * {@link io.orbitkv.client.QueryCalls} and {@link io.orbitkv.client.Lifecycle} are the edge around
 * it. {@link io.orbitkv.client.SteppedSession} drives the same state machine step by step, for
 * simulators.
 */
package io.orbitkv.client;
