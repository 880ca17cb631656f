/**
 * Linux through the foreign function interface: memory shared by descriptor, sockets that carry
 * descriptors, and ways to wait. Knows nothing of OrbitKV.
 *
 * <p><b>Errors.</b> A failed call throws {@link io.orbitkv.linux.LinuxException} with its {@link
 * io.orbitkv.linux.Errno}.
 *
 * <p><b>Descriptors and memory.</b> {@link io.orbitkv.linux.Fd} owns a descriptor. {@link
 * io.orbitkv.linux.Memfd} makes shared memory files of sealed size, {@link
 * io.orbitkv.linux.Mapping} maps them, and {@link io.orbitkv.linux.MemoryFacts} tells how much
 * memory there is.
 *
 * <p><b>Sockets.</b> {@link io.orbitkv.linux.UnixListener} accepts what {@link
 * io.orbitkv.linux.UnixConnection} connects; a {@link io.orbitkv.linux.Received} may bring
 * descriptors and the sender's {@link io.orbitkv.linux.Ucred}. {@link io.orbitkv.linux.LockFile}
 * decides which process may listen.
 *
 * <p><b>Waiting.</b> {@link io.orbitkv.linux.EventFd} wakes, through a {@link
 * io.orbitkv.linux.Signaller} where the other side is not trusted; {@link io.orbitkv.linux.PidFd}
 * tells when a process ends; {@link io.orbitkv.linux.Poll} waits on a few descriptors, {@link
 * io.orbitkv.linux.Epoll} on many. Every wait has a bound in milliseconds.
 *
 * <p><b>Storage.</b> {@link io.orbitkv.linux.DirectFile} is a preallocated file that is read and
 * written past the page cache, either by the calling thread or through an {@link
 * io.orbitkv.linux.IoUring}.
 *
 * <p><b>Processes.</b> {@link io.orbitkv.linux.Ids}, {@link io.orbitkv.linux.Affinity}, {@link
 * io.orbitkv.linux.CpuClock}.
 *
 * <p>Native calls hide behind the package-private classes named {@code …Calls}; {@code CallState}
 * binds them and holds each thread's error number.
 */
package io.orbitkv.linux;
