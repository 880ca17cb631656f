package io.orbitkv.client;

import io.orbitkv.channel.SocketPaths;
import io.orbitkv.linux.Ids;
import java.nio.file.Path;
import java.time.Duration;
import java.util.UUID;

/**
 * How a client connects and works.
 *
 * @param socket socket of the Manager
 * @param instanceId engine instance; another living process with the same one is refused
 * @param clientName name for the Manager's log and status
 * @param timeout bound of every call
 * @param spinNs nanoseconds that a waiter spins before it sleeps
 * @param copyThreads threads that copy for operations whose caller does not wait, and where there
 *     is more than one processor help with large ones, 1 to 64
 * @param verify whether a restore checks the sum of each source block before it copies
 */
public record ClientConfig(
    Path socket,
    String instanceId,
    String clientName,
    Duration timeout,
    long spinNs,
    int copyThreads,
    boolean verify) {
  /** Default of {@code spinNs}: waking a halted core costs about as much. */
  public static final long DEFAULT_SPIN_NS = 25_000;

  private static final Duration MAX_TIMEOUT = Duration.ofDays(1);

  /** Checks all values. */
  public ClientConfig {
    require(!instanceId.isBlank(), "instanceId is blank");
    require(
        timeout.compareTo(Duration.ofMillis(1)) >= 0 && timeout.compareTo(MAX_TIMEOUT) <= 0,
        "timeout=" + timeout + ", allowed=PT0.001S.." + MAX_TIMEOUT);
    require(spinNs >= 0, "spinNs=" + spinNs + ", allowed=0 and more");
    require(
        copyThreads >= 1 && copyThreads <= 64, "copyThreads=" + copyThreads + ", allowed=1..64");
  }

  private static void require(boolean condition, String what) {
    if (!condition) {
      throw new IllegalArgumentException("client configuration: " + what);
    }
  }

  /** The defaults of this process: default socket, random instance, 5 s, one copy thread. */
  public static ClientConfig defaults() {
    return new ClientConfig(
        SocketPaths.defaultSocket(System.getenv(), Ids.uid()),
        UUID.randomUUID().toString(),
        "java",
        Duration.ofSeconds(5),
        DEFAULT_SPIN_NS,
        1,
        false);
  }

  /** The same with another socket. */
  public ClientConfig withSocket(Path value) {
    return new ClientConfig(value, instanceId, clientName, timeout, spinNs, copyThreads, verify);
  }

  /** The same with another instance. */
  public ClientConfig withInstanceId(String value) {
    return new ClientConfig(socket, value, clientName, timeout, spinNs, copyThreads, verify);
  }

  /** The same with another name. */
  public ClientConfig withClientName(String value) {
    return new ClientConfig(socket, instanceId, value, timeout, spinNs, copyThreads, verify);
  }

  /** The same with another bound. */
  public ClientConfig withTimeout(Duration value) {
    return new ClientConfig(socket, instanceId, clientName, value, spinNs, copyThreads, verify);
  }

  /** The same with another spin. */
  public ClientConfig withSpinNs(long value) {
    return new ClientConfig(socket, instanceId, clientName, timeout, value, copyThreads, verify);
  }

  /** The same with another number of copy threads. */
  public ClientConfig withCopyThreads(int value) {
    return new ClientConfig(socket, instanceId, clientName, timeout, spinNs, value, verify);
  }

  /** The same with or without the check of sources. */
  public ClientConfig withVerify(boolean value) {
    return new ClientConfig(socket, instanceId, clientName, timeout, spinNs, copyThreads, value);
  }
}
