package io.orbitkv.client;

import java.time.Instant;

/**
 * How a {@link ReconnectingClient} stands.
 *
 * @param connected whether it has a session with a Manager
 * @param since when it became connected or lost the Manager, of the system's clock
 * @param reconnects how often a Manager was found again after a loss, or after a start without one
 * @param lastError why the last session ended or the last attempt failed; empty when none has
 */
public record ConnectionState(
    boolean connected, Instant since, long reconnects, String lastError) {}
