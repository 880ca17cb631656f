/**
 * The core: all cache state of a Manager in one single-threaded, deterministic state machine.
 *
 * <p>{@link io.orbitkv.core.CacheCore} takes commands, session events and the time in, and gives
 * effects out through {@link io.orbitkv.core.CoreOutput}. Inside, {@code BlockPool} cuts the arenas
 * into slabs, {@code BlockIndex} maps keys to rows off the object heap, {@code Leases} and {@code
 * Operations} own pins, and an {@code EvictionPolicy} names victims.
 */
package io.orbitkv.core;
