/**
 * The client as {@link io.orbitkv.client.bridge.Bridge}: static methods over longs, ints and direct
 * buffers, for engines in another language that hold a JVM in their process. Objects stay here, in
 * {@link io.orbitkv.client.bridge.Handles}; the caller has their ids. What a call needs beyond a
 * few numbers is in a {@link io.orbitkv.client.bridge.CallBuffer}.
 */
package io.orbitkv.client.bridge;
