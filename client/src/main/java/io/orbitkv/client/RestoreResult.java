package io.orbitkv.client;

import io.orbitkv.channel.Status;
import java.util.BitSet;

/**
 * How a restore ended.
 *
 * @param status OK when every block was delivered
 * @param message what the Manager or the copy said; empty when all is well
 * @param notDelivered bit i is set when the block of page i, counted over the items in order, was
 *     not delivered
 * @param copyNs nanoseconds that the copy took
 */
public record RestoreResult(Status status, String message, BitSet notDelivered, long copyNs) {}
