/**
 * Files on SSD behind the core's I/O port.
 *
 * <p>{@link io.orbitkv.storage.SsdStore} owns the files and implements {@link
 * io.orbitkv.core.SsdPort}. {@code SsdFile} is one file: {@code Superblock}, {@code ClearLog}, and
 * segments that each begin with a {@code SegmentTable}. Bytes move through a {@code BlockIo}:
 * {@code UringIo} where the kernel has io_uring, {@code ThreadIo} with positional reads and writes
 * elsewhere.
 */
package io.orbitkv.storage;
