package io.orbitkv.client;

/**
 * Right to restore the blocks that a lookup found, once.
 *
 * @param id id within the Manager epoch
 * @param epoch low half of the Manager epoch
 * @param namespace index of the namespace in the lookup
 * @param group group id
 * @param blocks number of blocks
 */
public record Lease(long id, long epoch, int namespace, int group, int blocks) {}
