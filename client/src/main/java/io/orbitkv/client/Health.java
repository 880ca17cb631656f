package io.orbitkv.client;

/**
 * State of a Manager.
 *
 * @param ready whether it takes registrations
 * @param percent how much of its pool is prepared, 0 to 100
 */
public record Health(boolean ready, int percent) {}
