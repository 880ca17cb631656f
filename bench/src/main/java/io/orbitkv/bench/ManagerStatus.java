package io.orbitkv.bench;

import io.orbitkv.channel.Status;
import io.orbitkv.client.AdminClient;
import io.orbitkv.client.OrbitKvException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What a running Manager says of itself. Immutable. */
public final class ManagerStatus {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);
  private static final long POLL_NS = 20_000_000;

  /** Gauges that are 0 when nobody uses the Manager. */
  private static final List<String> RETURNED =
      List.of(
          "pinned_blocks",
          "leases",
          "lease_bytes",
          "grants_active",
          "queries_pending",
          "retained_operations",
          "sessions_retained");

  private final JsonNode json;

  private ManagerStatus(JsonNode json) {
    this.json = json;
  }

  /** Parses one. */
  public static ManagerStatus parse(String json) {
    return new ManagerStatus(new JsonMapper().readTree(json));
  }

  /**
   * Asks the Manager.
   *
   * @throws OrbitKvException when no Manager answers in time
   */
  public static ManagerStatus read(Path socket) {
    return parse(AdminClient.status(socket, TIMEOUT));
  }

  /**
   * Asks the Manager until it holds nothing for anyone, or the bound is over: what a client gives
   * back is taken back beside the client.
   */
  public static ManagerStatus awaitSettled(Path socket, Duration bound) {
    long end = System.nanoTime() + bound.toNanos();
    ManagerStatus status = read(socket);
    while (!status.leaks().isEmpty() && System.nanoTime() - end < 0) {
      LockSupport.parkNanos(POLL_NS);
      status = read(socket);
    }
    return status;
  }

  /**
   * One number, by its key and those of the objects around it, outermost first.
   *
   * @throws OrbitKvException when the Manager did not send it
   */
  public long number(String... keys) {
    JsonNode value = json;
    for (String key : keys) {
      value = value.path(key);
    }
    if (!value.isNumber()) {
      throw new OrbitKvException(
          Status.INVALID, "Manager status: no number \"" + String.join(".", keys) + "\"");
    }
    return value.longValue();
  }

  /** Process id of the Manager. */
  public int managerPid() {
    return Math.toIntExact(number("manager_pid"));
  }

  /** What should have been given back and was not, in words; empty when all was. */
  public List<String> leaks() {
    List<String> leaks = new ArrayList<>();
    for (String gauge : RETURNED) {
      if (number(gauge) != 0) {
        leaks.add(gauge + "=" + number(gauge));
      }
    }
    if (number("pool_used_bytes") != number("resident_bytes")) {
      leaks.add(
          "pool_used_bytes="
              + number("pool_used_bytes")
              + ", resident_bytes="
              + number("resident_bytes"));
    }
    return leaks;
  }
}
