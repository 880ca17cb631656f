package io.orbitkv.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;

/**
 * Notices that another socket file lies at a path: a Manager was started. Belongs to one thread.
 *
 * <p>A Manager binds its socket a moment before it listens, and refuses connections in between; so
 * a file stays new for some attempts.
 */
final class SocketWatch {
  /** What tells one file from another at the same path. */
  private record Identity(Object key, Object modified) {}

  private static final int ATTEMPTS = 5;

  private final Path path;
  private Identity last;
  private int attemptsLeft;

  SocketWatch(Path path) {
    this.path = path;
  }

  /** Remembers the file that is there now, or that none is, before an attempt to connect. */
  void attempt() {
    Identity now = identity();
    attemptsLeft = Objects.equals(now, last) ? Math.max(0, attemptsLeft - 1) : ATTEMPTS - 1;
    last = now;
  }

  /** Somebody listens there: the file is no longer new. */
  void answered() {
    attemptsLeft = 0;
  }

  /** True when a file is there that deserves another attempt. */
  boolean hasNewFile() {
    Identity now = identity();
    return now != null && (attemptsLeft > 0 || !Objects.equals(now, last));
  }

  private Identity identity() {
    try {
      BasicFileAttributes facts = Files.readAttributes(path, BasicFileAttributes.class);
      return new Identity(facts.fileKey(), facts.lastModifiedTime());
    } catch (IOException e) { // none there, or not ours to see
      return null;
    }
  }
}
