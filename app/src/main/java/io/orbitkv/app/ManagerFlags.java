package io.orbitkv.app;

import io.orbitkv.core.SsdConfig;
import io.orbitkv.linux.MemoryFacts;
import io.orbitkv.manager.ManagerConfig;
import io.orbitkv.manager.SsdOptions;
import io.orbitkv.storage.SsdStore;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import picocli.CommandLine.Model.OptionSpec;

/**
 * The flags of a Manager. They are declared by calls, not by annotations: to read those takes 0.15
 * s of a processor's time, which a start can not spare.
 */
final class ManagerFlags {
  /** Levels of the log. */
  enum LogLevel {
    /** Failures only. */
    ERROR,
    /** What an operator should look at. */
    WARN,
    /** Changes of state. */
    INFO,
    /** Each step of the control path. */
    DEBUG,
    /** Everything. */
    TRACE
  }

  private static final int MAX_PORT = 65_535;

  private final List<OptionSpec> all = new ArrayList<>();

  private final OptionSpec poolSize =
      size("--pool-size", "Size of the pool. Default: half of the free memory.");

  private final OptionSpec poolShards =
      number("--pool-shards", "N", "Arenas that the pool is made of. Default: 1.", 1);

  private final OptionSpec socket =
      add(
          SocketOption.NAME,
          option ->
              option
                  .type(Path.class)
                  .paramLabel(SocketOption.LABEL)
                  .description(SocketOption.DESCRIPTION));

  private final OptionSpec httpAddr =
      add(
          "--http-addr",
          option ->
              option
                  .type(String.class)
                  .paramLabel("HOST:PORT")
                  .defaultValue("127.0.0.1:" + ManagerConfig.DEFAULT_HTTP_PORT)
                  .description(
                      "Address of health and metrics; port 0 is any free one."
                          + " Default: 127.0.0.1:9091."));

  private final OptionSpec queryBudget =
      size("--query-budget", "Most bytes that leases pin. Default: three quarters of the pool.");

  private final OptionSpec queryInstanceBudget =
      size(
          "--query-instance-budget",
          "Most bytes that leases of one instance pin. Default: as for all.");

  private final OptionSpec useHugepages =
      flag(
          "--use-hugepages",
          "Make the pool of reserved pages of 2 MiB; ends when there are too few.");

  private final OptionSpec logLevel =
      add(
          "--log-level",
          option ->
              option
                  .type(LogLevel.class)
                  .paramLabel("LEVEL")
                  .defaultValue(LogLevel.INFO.name())
                  .description("error, warn, info, debug or trace. Default: info."));

  private final OptionSpec allowUid =
      add(
          "--allow-uid",
          option ->
              option
                  .type(Set.class)
                  .auxiliaryTypes(Integer.class)
                  .splitRegex(",")
                  .paramLabel("UID")
                  .description(
                      "User that may connect; may be repeated. Default: the Manager's own."));

  private final OptionSpec drainTimeout =
      number(
          "--drain-timeout",
          "SECONDS",
          "Most time that an end waits for copies in progress. Default: 10.",
          10);

  private final OptionSpec ssdCachePath =
      add(
          "--ssd-cache-path",
          option ->
              option
                  .type(List.class)
                  .auxiliaryTypes(Path.class)
                  .splitRegex(",")
                  .paramLabel("DIR")
                  .description(
                      "Directory for a file of the SSD tier; may be repeated. Default: none."));

  private final OptionSpec ssdCacheCapacity =
      size("--ssd-cache-capacity", "Size of the file in each such directory.");

  private final OptionSpec ssdBackend =
      add(
          "--ssd-backend",
          option ->
              option
                  .type(SsdStore.Backend.class)
                  .paramLabel("BACKEND")
                  .defaultValue(SsdStore.Backend.AUTO.name())
                  .description(
                      "auto, uring or pread: how the SSD tier moves bytes. Default: auto."));

  private final OptionSpec ssdWritePolicy =
      add(
          "--ssd-write-policy",
          option ->
              option
                  .type(SsdConfig.WritePolicy.class)
                  .paramLabel("POLICY")
                  .defaultValue(SsdConfig.WritePolicy.ALL.name())
                  .description(
                      "all: each block is written; reuse: those used after their publish."
                          + " Default: all."));

  private final OptionSpec ssdWriteBudget =
      size("--ssd-write-budget", "Most bytes written to the SSD tier a day. Default: no limit.");

  private final OptionSpec ssdReadFloor =
      size(
          "--ssd-read-floor",
          "Bytes a second of reads below which an SSD file is by-passed. Default: none.");

  private final OptionSpec ssdCacheReset =
      flag(
          "--ssd-cache-reset",
          "Make SSD files anew that are of another format, another capacity or damaged.");

  private final OptionSpec stopWithStdin = hidden("--stop-with-stdin");
  private final OptionSpec exitWhenReady = hidden("--exit-when-ready");

  private OptionSpec size(String name, String description) {
    return add(
        name, option -> option.type(ByteSize.class).paramLabel("SIZE").description(description));
  }

  private OptionSpec number(String name, String label, String description, int byDefault) {
    return add(
        name,
        option ->
            option
                .type(int.class)
                .paramLabel(label)
                .defaultValue(Integer.toString(byDefault))
                .description(description));
  }

  private OptionSpec flag(String name, String description) {
    return add(name, option -> option.type(boolean.class).description(description));
  }

  private OptionSpec hidden(String name) {
    return add(name, option -> option.type(boolean.class).hidden(true));
  }

  private OptionSpec add(String name, UnaryOperator<OptionSpec.Builder> declare) {
    OptionSpec option = declare.apply(OptionSpec.builder(name)).build();
    all.add(option);
    return option;
  }

  /** All of them, in the order of the help. */
  List<OptionSpec> all() {
    return all;
  }

  LogLevel logLevel() {
    return logLevel.getValue();
  }

  /** Whether the end of standard input stops the Manager. */
  boolean stopWithStdin() {
    return isSet(stopWithStdin);
  }

  /** Whether a Manager that is ready stops. */
  boolean exitWhenReady() {
    return isSet(exitWhenReady);
  }

  private static boolean isSet(OptionSpec flag) {
    return Boolean.TRUE.equals(flag.getValue());
  }

  /**
   * The Manager that was asked for.
   *
   * @throws IllegalArgumentException naming a flag's value and its rule
   * @throws IOException when the memory of the machine can not be read
   */
  ManagerConfig config() throws IOException {
    return ManagerConfig.builder(SocketOption.orDefault(socket.getValue()), poolBytes())
        .poolShards(poolShards.getValue())
        .httpAddr(httpAddress(httpAddr.getValue()))
        .queryBudgetBytes(bytes(queryBudget))
        .instanceBudgetBytes(bytes(queryInstanceBudget))
        .hugePages(isSet(useHugepages))
        .allowedUids(allowUid.getValue() == null ? Set.of() : allowUid.getValue())
        .drainTimeout(Duration.ofSeconds(drainTimeout.<Integer>getValue()))
        .ssd(ssd())
        .build();
  }

  /** The SSD tier, or null when no directory is named. */
  private SsdOptions ssd() {
    List<Path> paths = ssdCachePath.getValue();
    if (paths == null || paths.isEmpty()) {
      if (ssdCacheCapacity.getValue() != null) {
        throw new IllegalArgumentException(
            "--ssd-cache-capacity needs a directory: --ssd-cache-path is missing");
      }
      return null;
    }
    return new SsdOptions(
        paths,
        bytes(ssdCacheCapacity),
        ssdBackend.getValue(),
        ssdWritePolicy.getValue(),
        bytes(ssdWriteBudget),
        bytes(ssdReadFloor),
        isSet(ssdCacheReset));
  }

  private long poolBytes() throws IOException {
    return poolSize.getValue() == null ? MemoryFacts.read().freeBytes() / 2 : bytes(poolSize);
  }

  /** Bytes of a size, 0 when it was not given. */
  private static long bytes(OptionSpec size) {
    ByteSize given = size.getValue();
    return given == null ? 0 : given.bytes();
  }

  private static InetSocketAddress httpAddress(String text) {
    int colon = text.lastIndexOf(':');
    String port = text.substring(colon + 1);
    if (colon < 1 || !port.matches("\\d{1,5}") || Integer.parseInt(port) > MAX_PORT) {
      throw new IllegalArgumentException(
          "--http-addr=\"" + text + "\" must be HOST:PORT with a port from 0 to " + MAX_PORT);
    }
    String host = text.substring(0, colon).replaceAll("^\\[|\\]$", "");
    return new InetSocketAddress(host, Integer.parseInt(port));
  }
}
