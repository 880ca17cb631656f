package io.orbitkv.manager;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Read-only HTTP: {@code /health}, {@code /ready}, {@code /metrics} and {@code /instances}.
 * Liveness answers from the start on, the others once {@link #serve} has been called. Connections
 * are bounded in number, and each request in time.
 */
final class HttpEndpoints implements AutoCloseable {
  private static final String TEXT = "text/plain; charset=utf-8";
  private static final String JSON = "application/json";
  private static final int BACKLOG = 64;

  /** Most connections at a time; further ones are closed at once. */
  static final int MAX_CONNECTIONS = 64;

  private static final int MAX_SECONDS = 10;
  private static final int NO_BODY = -1;

  static { // read once, when the server's classes are loaded; what the operator chose stands
    limit("jdk.httpserver.maxConnections", MAX_CONNECTIONS);
    limit("sun.net.httpserver.idleInterval", MAX_SECONDS); // of a connection without a request
    limit("sun.net.httpserver.maxReqTime", MAX_SECONDS); // of a request, to its last byte
    limit("sun.net.httpserver.maxRspTime", MAX_SECONDS); // of an answer that nobody reads
  }

  private final HttpServer server;
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();

  private volatile MetricsText metrics;

  private static void limit(String property, int value) {
    if (System.getProperty(property) == null) {
      System.setProperty(property, Integer.toString(value));
    }
  }

  private HttpEndpoints(HttpServer server) {
    this.server = server;
  }

  /** One answer. */
  private record Answer(int status, String type, String body) {}

  /** Makes answers; a fault becomes status 500. */
  @FunctionalInterface
  private interface Endpoint {
    Answer answer();
  }

  /**
   * Binds the address and answers liveness.
   *
   * @throws ManagerException when the address can not be bound
   */
  static HttpEndpoints bind(InetSocketAddress address) {
    try {
      HttpEndpoints endpoints = new HttpEndpoints(HttpServer.create(address, BACKLOG));
      endpoints.server.setExecutor(endpoints.threads);
      endpoints.add("/", () -> new Answer(404, TEXT, "not found\n"));
      endpoints.add("/health", () -> new Answer(200, TEXT, "ok"));
      endpoints.server.start();
      return endpoints;
    } catch (IOException e) {
      throw new ManagerException(
          "HTTP address can not be bound: " + text(address) + ": " + e.getMessage(), e);
    }
  }

  /** Answers the other paths. */
  void serve(StatusSource status, EdgeCounters edge, boolean enablePrometheus) {
    add("/ready", () -> ready(status));
    add("/instances", () -> new Answer(200, JSON, status.instancesJson()));
    metrics = new MetricsText(status, edge);
    add("/metrics", enablePrometheus ? this::metrics : HttpEndpoints::noMetrics);
  }

  private Answer metrics() {
    return new Answer(200, metrics.contentType(), metrics.render());
  }

  private static Answer noMetrics() {
    return new Answer(404, TEXT, "metrics are switched off\n");
  }

  private static Answer ready(StatusSource status) {
    boolean ready = status.facts().state().equals("ready");
    return new Answer(ready ? 200 : 503, JSON, status.readyJson());
  }

  private void add(String path, Endpoint endpoint) {
    server.createContext(path, exchange -> handle(exchange, path, endpoint));
  }

  private static void handle(HttpExchange exchange, String path, Endpoint endpoint)
      throws IOException {
    try (exchange) {
      send(exchange, answer(exchange, path, endpoint));
    }
  }

  private static Answer answer(HttpExchange exchange, String path, Endpoint endpoint) {
    if (!exchange.getRequestMethod().equals("GET")) {
      exchange.getResponseHeaders().set("Allow", "GET");
      return new Answer(405, TEXT, "GET only\n");
    }
    if (!path.equals("/") && !exchange.getRequestURI().getPath().equals(path)) {
      return new Answer(404, TEXT, "not found\n"); // contexts match by prefix
    }
    try {
      return endpoint.answer();
    } catch (RuntimeException e) {
      return new Answer(500, TEXT, "internal fault\n");
    }
  }

  private static void send(HttpExchange exchange, Answer answer) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", answer.type());
    byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
    if (exchange.getRequestMethod().equals("HEAD")) {
      exchange.sendResponseHeaders(answer.status(), NO_BODY);
      return;
    }
    exchange.sendResponseHeaders(answer.status(), body.length);
    exchange.getResponseBody().write(body);
  }

  /** Address that is bound. */
  InetSocketAddress address() {
    return server.getAddress();
  }

  /** The bound address as host:port. */
  String addressText() {
    return text(address());
  }

  private static String text(InetSocketAddress address) {
    String host = address.getAddress().getHostAddress();
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + address.getPort();
  }

  /** Idempotent; requests in progress are cut off. */
  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
