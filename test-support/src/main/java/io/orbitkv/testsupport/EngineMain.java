package io.orbitkv.testsupport;

import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.client.BlockHashes;
import io.orbitkv.client.ClientConfig;
import io.orbitkv.client.GroupSpec;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.OrbitKvException;
import io.orbitkv.client.OrbitKvTimeoutException;
import io.orbitkv.client.PausePoints;
import io.orbitkv.client.PublishItem;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.RegistrationSpec;
import io.orbitkv.client.RestoreHandle;
import io.orbitkv.client.RestoreItem;
import io.orbitkv.client.RestoreResult;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * An engine that obeys lines on standard input and answers each with one line. Commands:
 *
 * <pre>
 * publish FIRST COUNT   stored=S held=H refused=R status=X
 * lookup FIRST COUNT    found=N            keeps the lease
 * restore               delivered=N wrong=W status=X    of the kept lease
 * release               released
 * pause POINT           armed              the next operation says "paused" there and stays until "resume";
 *                       before a point "helping" its driver waits until a helper has come
 * background COMMAND    started            runs publish or restore on another thread; "result" waits for its answer
 * result                what the background command answered
 * await MS              ended=B pagesFree=B    of the latest operation, after a wait of at most so long
 * fork                  pid=P              a forked child of this process that does nothing
 * ping                  pong
 * churn FIRST COUNT     rounds=R hits=H wrong=W unexpected=U    publishes, looks up and restores until
 *                       "enough"; run it by "background"
 * hits                  hits=H           of the churn so far
 * enough                ending
 * state                 connected=B reconnects=N generation=G
 * </pre>
 *
 * A failure is answered with {@code error=STATUS message}, a call that reached its bound with
 * {@code error=TIMEOUT message}.
 */
public final class EngineMain {
  /** Bytes of a block of a usual engine. */
  public static final int BLOCK_BYTES = 64 << 10;

  /** Pages of a usual engine. */
  static final int PAGES = 512;

  /** Bytes of a block of an engine for large operations. */
  static final int SMALL_BLOCK_BYTES = 512;

  /** Pages of an engine for large operations. */
  static final int MANY_PAGES = 70_000;

  /** Longer than a test stops a process for. */
  private static final Duration BOUND = Duration.ofSeconds(150);

  private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private final int blockBytes;
  private final MemorySegment pages;
  private final EngineCache cache;
  private volatile CountDownLatch resume = new CountDownLatch(1);
  private volatile CountDownLatch paused = new CountDownLatch(1);
  private volatile String pausePoint = "";
  private volatile Predicate<Duration> latestEnds;
  private volatile BooleanSupplier latestPagesFree;
  private Lease lease;
  private long leaseFirst;
  private Thread background;
  private volatile String backgroundAnswer;
  private volatile boolean enough;
  private volatile int churned;

  private EngineMain(
      Path socket,
      String instance,
      boolean reconnects,
      int blockBytes,
      int pageCount,
      Duration timeout) {
    this.blockBytes = blockBytes;
    pages = Arena.global().allocate((long) pageCount * blockBytes, 4096);
    ClientConfig config =
        ClientConfig.defaults()
            .withSocket(socket)
            .withInstanceId(instance)
            .withClientName("test engine")
            .withTimeout(timeout);
    RegistrationSpec spec =
        new RegistrationSpec(
            state(), List.of(GroupSpec.contiguous(pages, blockBytes, pageCount)), false);
    cache = reconnects ? EngineCache.reconnecting(config, spec) : EngineCache.plain(config, spec);
    PausePoints.onReached(this::reached);
  }

  private static StateFields state() {
    return StateFields.newBuilder()
        .setModel("test")
        .setComputeDtype("bf16")
        .setKvDtype("bf16")
        .setLayout("layer-page")
        .setBlockTokens(16)
        .setTpSize(1)
        .setPpSize(1)
        .setDcpSize(1)
        .setHashScheme("test")
        .setHashBytes(32)
        .setEngine("test")
        .build();
  }

  /**
   * Runs until its input ends. Arguments: socket, instance, whether it connects again, bytes of a
   * block, pages, bound of a call in ms.
   */
  public static void main(String[] args) throws IOException {
    EngineMain engine =
        new EngineMain(
            Path.of(args[0]),
            args[1],
            Boolean.parseBoolean(args[2]),
            Integer.parseInt(args[3]),
            Integer.parseInt(args[4]),
            Duration.ofMillis(Long.parseLong(args[5])));
    engine.out.println("ready");
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      engine.out.println(engine.answer(line));
    }
    engine.cache.close();
  }

  private void reached(String point) {
    String armed = pausePoint;
    if (point.equals(armed)) {
      pausePoint = "";
      out.println("paused " + point);
      paused.countDown();
      await(resume);
    } else if (point.equals(armed.replace(".helping", ".shared"))) {
      await(paused);
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      if (!latch.await(BOUND.toSeconds(), TimeUnit.SECONDS)) {
        throw new IllegalStateException("held for longer than " + BOUND);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private String answer(String line) {
    try {
      return execute(line.split(" "));
    } catch (OrbitKvTimeoutException e) {
      return "error=TIMEOUT " + e.getMessage();
    } catch (OrbitKvException e) {
      return "error=" + e.status() + " " + e.getMessage();
    } catch (RuntimeException e) {
      return "error=UNEXPECTED " + e;
    }
  }

  private String execute(String[] words) {
    return switch (words[0]) {
      case "publish" -> publish(Long.parseLong(words[1]), Integer.parseInt(words[2]));
      case "lookup" -> lookup(Long.parseLong(words[1]), Integer.parseInt(words[2]));
      case "restore" -> restore();
      case "release" -> cache.release(lease) ? "released" : "ended";
      case "pause" -> {
        resume = new CountDownLatch(1);
        paused = new CountDownLatch(1);
        pausePoint = words[1];
        yield "armed";
      }
      case "resume" -> {
        resume.countDown();
        yield "resumed";
      }
      case "background" -> inBackground(line(words));
      case "result" -> result();
      case "await" -> {
        boolean ended = latestEnds.test(Duration.ofMillis(Long.parseLong(words[1])));
        yield "ended=%s pagesFree=%s".formatted(ended, latestPagesFree.getAsBoolean());
      }
      case "fork" -> "pid=" + fork();
      case "ping" -> {
        cache.ping();
        yield "pong";
      }
      case "state" -> cache.state();
      case "churn" -> churn(Long.parseLong(words[1]), Integer.parseInt(words[2]));
      case "hits" -> "hits=" + churned;
      case "enough" -> {
        enough = true;
        yield "ending";
      }
      default -> throw new IllegalArgumentException("unknown command " + words[0]);
    };
  }

  private static String line(String[] words) {
    return String.join(" ", List.of(words).subList(1, words.length));
  }

  private String inBackground(String line) {
    background = new Thread(() -> backgroundAnswer = answer(line), "test-background");
    background.setDaemon(true);
    background.start();
    return "started";
  }

  private String result() {
    try {
      return background.join(BOUND) ? backgroundAnswer : "error=PENDING after " + BOUND;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "error=INTERRUPTED";
    }
  }

  /** The hash of a block; its content follows from the key alone. */
  private static BlockHashes hashes(long first, int count) {
    List<byte[]> hashes = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      byte[] hash = new byte[32];
      MemorySegment.ofArray(hash).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, mix(first + i));
      MemorySegment.ofArray(hash).set(ValueLayout.JAVA_LONG_UNALIGNED, 24, first + i);
      hashes.add(hash);
    }
    return BlockHashes.of(hashes);
  }

  private static long mix(long value) {
    long z = (value + 1) * 0x9e37_79b9_7f4a_7c15L;
    z = (z ^ (z >>> 30)) * 0xbf58_476d_1ce4_e5b9L;
    return z ^ (z >>> 27);
  }

  private static long word(long key, long index) {
    return mix(key * 1_000_003 + index);
  }

  private void fill(int page, long key) {
    for (long i = 0; i < blockBytes / 8; i++) {
      pages.set(ValueLayout.JAVA_LONG, (long) page * blockBytes + 8 * i, word(key, i));
    }
  }

  private int wrongWords(int page, long key) {
    int wrong = 0;
    for (long i = 0; i < blockBytes / 8; i++) {
      if (pages.get(ValueLayout.JAVA_LONG, (long) page * blockBytes + 8 * i) != word(key, i)) {
        wrong++;
      }
    }
    return wrong;
  }

  private static int[] pageNumbers(int count) {
    int[] numbers = new int[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = i;
    }
    return numbers;
  }

  /** Pages in falling order, so that a copy of neighbours has steps as well. */
  private static int[] fallingNumbers(int count) {
    int[] numbers = new int[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = count - 1 - i;
    }
    return numbers;
  }

  private String publish(long first, int count) {
    for (int i = 0; i < count; i++) {
      fill(i, first + i);
    }
    EngineCache.Publish publish =
        cache.publish(new PublishItem(0, 0, null, hashes(first, count), pageNumbers(count)));
    latestPagesFree = publish.pagesFree();
    latestEnds = bound -> publish.await().apply(bound) != null;
    PublishResult result = publish.await().apply(BOUND);
    if (result == null) {
      return "error=PENDING after " + BOUND;
    }
    return "stored=%d held=%d refused=%d status=%s"
        .formatted(result.stored(), result.held(), result.refused(), result.status());
  }

  private String lookup(long first, int count) {
    LookupResult result =
        cache.lookup(LookupRequestSpec.prefix(cache.namespace(), hashes(first, count)));
    lease = result.leases().isEmpty() ? null : result.leases().getFirst();
    leaseFirst = first;
    return "found=" + result.prefix();
  }

  private String restore() {
    int count = lease.blocks();
    pages.asSlice(0, (long) count * blockBytes).fill((byte) 0x5a);
    int[] targets = fallingNumbers(count);
    RestoreHandle handle = cache.restore(RestoreItem.of(lease, targets));
    latestPagesFree = handle::pagesFree;
    latestEnds = bound -> handle.await(bound) != null;
    RestoreResult result = handle.await(BOUND);
    if (result == null) {
      return "error=PENDING after " + BOUND;
    }
    int wrong = 0;
    int delivered = 0;
    for (int i = 0; i < count; i++) {
      if (!result.notDelivered().get(i)) {
        delivered++;
        wrong += wrongWords(targets[i], leaseFirst + i);
      }
    }
    return "delivered=%d wrong=%d status=%s".formatted(delivered, wrong, result.status());
  }

  /** Goes on whatever becomes of the Manager; failures that are typed for that are no surprise. */
  private String churn(long first, int count) {
    Pattern typed = Pattern.compile(".*status=(OK|SESSION_ENDED|CANCELLED|STOPPING|LEASE_ENDED)");
    Pattern failed =
        Pattern.compile("error=(NOT_READY|SESSION_ENDED|EPOCH_MISMATCH|STOPPING) .*|found=\\d+");
    String restored = "delivered=%d wrong=0 status=OK".formatted(count);
    int rounds = 0;
    int hits = 0;
    int wrong = 0;
    List<String> unexpected = new ArrayList<>();
    for (; !enough; rounds++) {
      for (String line :
          List.of("publish " + first + " " + count, "lookup " + first + " " + count)) {
        String said = answer(line);
        if (!typed.matcher(said).matches() && !failed.matcher(said).matches()) {
          unexpected.add(said);
        }
      }
      String said = lease == null ? "" : answer("restore");
      hits += said.equals(restored) ? 1 : 0;
      wrong += said.startsWith("delivered") && !said.contains(" wrong=0 ") ? 1 : 0;
      if (!said.isEmpty() && !typed.matcher(said).matches() && !failed.matcher(said).matches()) {
        unexpected.add(said);
      }
      churned = hits;
    }
    return "rounds=%d hits=%d wrong=%d unexpected=%s".formatted(rounds, hits, wrong, unexpected);
  }

  /**
   * Forks a child that calls pause(2) and nothing of this JVM. clone(2) without CLONE_VM copies the
   * address space as fork(2) does.
   */
  @SuppressWarnings("restricted")
  private static int fork() {
    Linker linker = Linker.nativeLinker();
    MethodHandle clone =
        linker.downcallHandle(
            linker.defaultLookup().findOrThrow("clone"),
            FunctionDescriptor.of(
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS),
            Linker.Option.firstVariadicArg(4));
    int sigchld = 17;
    MemorySegment stack = Arena.global().allocate(64 << 10, 16);
    try {
      return (int)
          clone.invokeExact(
              linker.defaultLookup().findOrThrow("pause"),
              stack.asSlice(stack.byteSize() - 4096),
              sigchld,
              MemorySegment.NULL);
    } catch (Throwable t) {
      throw new IllegalStateException("clone", t);
    }
  }
}
