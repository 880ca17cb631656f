package io.orbitkv.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;

/**
 * Notices that another socket file lies at a path: a Manager was started. Belongs to one thread.
 */
final class SocketWatch {
  /** What tells one file from another at the same path. */
  private record Identity(Object key, Object modified) {}

  private final Path path;
  private Identity last;

  SocketWatch(Path path) {
    this.path = path;
  }

  /** Remembers the file that is there now, or that none is. */
  void remember() {
    last = identity();
  }

  /** True when a file is there, and another one than was remembered. */
  boolean hasNewFile() {
    Identity now = identity();
    return now != null && !Objects.equals(now, last);
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
