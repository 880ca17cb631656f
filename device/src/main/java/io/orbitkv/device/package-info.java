/**
 * Where an engine's pages live, and how blocks are copied between them and the arenas.
 *
 * <p>{@link io.orbitkv.device.DeviceKind} names the kinds and what each promises; whoever depends
 * on such a promise asks the kind. For pages in process memory {@link io.orbitkv.device.HostCopier}
 * copies and sums, through the {@link io.orbitkv.device.ChecksumView} of each segment it sums.
 */
package io.orbitkv.device;
