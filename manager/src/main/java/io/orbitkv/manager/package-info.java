/**
 * The daemon: one Cache Manager of a host.
 *
 * <p>{@link io.orbitkv.manager.Manager} starts and stops the parts. {@code ControlAgent} is the one
 * thread that owns the core and serves the rings of every session; {@code BootstrapServer} accepts
 * engines and gives each a {@code SessionConnection}, the thread of its lifecycle frames; {@code
 * PoolArenas} is the pool's memory; {@code HttpEndpoints} shows what the Manager holds, from the
 * snapshots of {@code StatusSource}.
 */
package io.orbitkv.manager;
