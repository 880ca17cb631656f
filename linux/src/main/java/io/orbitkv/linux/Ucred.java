package io.orbitkv.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;

/**
 * Who sent a message or holds the other end of a socket, by the kernel's word. In memory, struct
 * ucred has 12 bytes: pid, uid, gid, of 4 bytes each.
 *
 * @param pid process; 0 when it has no number in this PID namespace
 * @param uid user, effective
 * @param gid group, effective
 * @see <a href="https://man7.org/linux/man-pages/man7/unix.7.html">unix(7)</a>
 */
public record Ucred(int pid, int uid, int gid) {
  static final int BYTES = 12;

  static Ucred ofSelf() {
    return new Ucred(Ids.pid(), Ids.uid(), Ids.gid());
  }

  static Ucred read(MemorySegment segment, long offset) {
    return new Ucred(
        segment.get(JAVA_INT, offset),
        segment.get(JAVA_INT, offset + 4),
        segment.get(JAVA_INT, offset + 8));
  }

  void write(MemorySegment segment, long offset) {
    segment.set(JAVA_INT, offset, pid);
    segment.set(JAVA_INT, offset + 4, uid);
    segment.set(JAVA_INT, offset + 8, gid);
  }
}
