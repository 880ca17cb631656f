package io.orbitkv.manager;

import io.orbitkv.linux.Errno;
import io.orbitkv.linux.Ids;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.LockFile;
import io.orbitkv.linux.UnixConnection;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * The right to listen at a socket path: a lock beside it, held for the Manager's life. Only the
 * holder replaces what a dead Manager left; a live socket, or a file that is none, is never
 * touched.
 */
final class SocketClaim implements AutoCloseable {
  private static final int CONNECT_MS = 1_000;
  private static final int LOCK_MODE = 0600;
  private static final int TYPE_MASK = 0170000;
  private static final int SOCKET_TYPE = 0140000;

  private final LockFile lock;
  private final Path createdDirectory;

  private SocketClaim(LockFile lock, Path createdDirectory) {
    this.lock = lock;
    this.createdDirectory = createdDirectory;
  }

  /**
   * Claims a path: afterwards nothing exists there.
   *
   * @param directoryMode of its directory, when that has to be made
   * @throws ManagerException saying who holds it or what stands there; nothing is left then
   */
  static SocketClaim take(Path socket, Set<PosixFilePermission> directoryMode) {
    Path created = createDirectory(socket.getParent(), directoryMode);
    LockFile lock = null;
    try {
      lock = lock(socket);
      removeDead(socket);
      return new SocketClaim(lock, created);
    } catch (Throwable t) {
      if (lock != null) {
        lock.close();
      }
      removeDirectory(created);
      throw t;
    }
  }

  private static Path createDirectory(Path directory, Set<PosixFilePermission> mode) {
    try {
      if (Files.isDirectory(directory)) {
        checkOwner(directory);
        return null;
      }
      Files.createDirectories(directory.getParent());
      Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(mode));
      Files.setPosixFilePermissions(directory, mode); // gives back what the umask took
      return directory;
    } catch (IOException e) {
      throw new ManagerException(
          "directory of the socket can not be created: path=" + directory + ": " + e, e);
    }
  }

  /** In a directory of somebody else the socket could be swapped for another. */
  private static void checkOwner(Path directory) throws IOException {
    int owner = (int) Files.getAttribute(directory, "unix:uid");
    if (owner != 0 && owner != Ids.uid()) {
      throw new ManagerException(
          "directory of the socket belongs to another user: path="
              + directory
              + ", owner uid="
              + owner
              + ", Manager uid="
              + Ids.uid());
    }
  }

  private static LockFile lock(Path socket) {
    Path path = socket.resolveSibling(socket.getFileName() + ".lock");
    try {
      LockFile lock = LockFile.tryLock(path, LOCK_MODE);
      if (lock == null) {
        throw new ManagerException(
            "another Manager holds the socket: path="
                + socket
                + ", pid="
                + LockFile.holderPid(path));
      }
      return lock;
    } catch (LinuxException e) {
      throw new ManagerException("lock of the socket can not be taken: " + e.getMessage(), e);
    }
  }

  private static void removeDead(Path socket) {
    try {
      if (!Files.exists(socket, LinkOption.NOFOLLOW_LINKS)) {
        return;
      }
      int mode = (int) Files.getAttribute(socket, "unix:mode", LinkOption.NOFOLLOW_LINKS);
      if ((mode & TYPE_MASK) != SOCKET_TYPE) {
        throw new ManagerException("what stands at the socket's path is no socket: path=" + socket);
      }
      checkDead(socket);
      Files.delete(socket);
    } catch (IOException e) {
      throw new ManagerException("dead socket can not be replaced: path=" + socket + ": " + e, e);
    }
  }

  private static void checkDead(Path socket) {
    try (UnixConnection connection = UnixConnection.connect(socket, CONNECT_MS)) {
      throw new ManagerException(
          "the socket is in use: path=" + socket + ", pid=" + connection.peer().pid());
    } catch (LinuxException e) {
      if (e.errno() != Errno.ECONNREFUSED) {
        throw new ManagerException(
            "it can not be told whether the socket is dead: " + e.getMessage(), e);
      }
    }
  }

  private static void removeDirectory(Path created) {
    if (created != null) {
      try {
        Files.deleteIfExists(created);
      } catch (IOException e) { // others have put something there: it is theirs now
        return;
      }
    }
  }

  /** Gives the path up; the socket is deleted before. Idempotent. */
  @Override
  public void close() {
    lock.close();
    removeDirectory(createdDirectory);
  }
}
