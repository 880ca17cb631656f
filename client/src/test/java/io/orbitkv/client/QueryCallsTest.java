package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.orbitkv.channel.LookupReply;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.Status;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class QueryCallsTest {
  private static final long BOUND_NS = TimeUnit.SECONDS.toNanos(20);
  private static final long LONG_NS = TimeUnit.SECONDS.toNanos(30);
  private static final long SHORT_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private final FakeManager manager = new FakeManager();
  private final QueryCalls calls = new QueryCalls(manager.session, new Parking(), 25_000);
  private final byte[] namespace = new byte[32];
  private volatile boolean stop;
  private Thread server;

  /** Sleeps like an eventfd that nobody signals: the re-check at the bound finds the answer. */
  private static final class Parking implements WakeUps {
    @Override
    public void awaitRestore(int timeoutMs) {
      LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(1));
    }

    @Override
    public void kickAgents() {}
  }

  @AfterEach
  void stopServer() throws InterruptedException {
    stop = true;
    if (server != null) {
      server.join(TimeUnit.SECONDS.toMillis(20));
    }
  }

  /** Answers on a thread of its own, as the Manager would. */
  private void serve() {
    server =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              while (!stop) {
                if (!answer()) {
                  Thread.onSpinWait();
                }
              }
            });
  }

  private boolean answer() {
    if (!manager.queryReplies.hasRoom() || !manager.queries.tryRead(manager.command)) {
      return false;
    }
    manager.queryBytes.take(manager.command, manager.data);
    if (manager.command.opcode == Opcode.LOOKUP) {
      answerLookup(manager.command.requestId, 5);
    } else {
      manager.reply.set(
          manager.command.opcode,
          Status.OK.code(),
          manager.command.requestId,
          FakeManager.EPOCH,
          0,
          0);
      assertThat(manager.queryReplies.tryWrite(manager.reply)).isTrue();
    }
    return true;
  }

  private void answerLookup(long requestId, int blocks) {
    int bytes = (int) LookupReply.byteSize(1, 8, 1);
    long at = manager.queryReplyBytes.tryClaim(bytes);
    var into = manager.queryReplyBytes.memory();
    LookupReply.writeHeader(into, at, LookupReply.READY, 1, 8, 1, 1000);
    LookupReply.writeGroup(into, LookupReply.groupAt(at, 0, 8), 0, 1, blocks, blocks);
    LookupReply.putBits(into, LookupReply.groupAt(at, 0, 8), 0, (1L << blocks) - 1);
    LookupReply.writeLease(into, LookupReply.leaseAt(at, 0, 1, 8), 4711, blocks, 0, 0);
    manager.reply.set(Opcode.LOOKUP, Status.OK.code(), requestId, FakeManager.EPOCH, 0, 0);
    manager.queryReplyBytes.commit(bytes, manager.reply);
    assertThat(manager.queryReplies.tryWrite(manager.reply)).isTrue();
  }

  private Status ping(long boundNs) {
    QueryCalls.Call call = calls.take();
    try {
      return calls.call(call, Opcode.PING, 0, 0, null, boundNs);
    } finally {
      calls.giveBack(call);
    }
  }

  @Test
  void shouldReadTheAnswersToLeasesGivenBack() {
    for (int i = 0; i < 5_000; i++) {
      calls.giveBackLease(i);
      assertThat(answer()).isTrue();
      assertThat(manager.command.opcode).isEqualTo(Opcode.RELEASE);
      assertThat(manager.command.scalar0).isEqualTo(i);
    }
    serve();
    assertThat(ping(BOUND_NS)).isEqualTo(Status.OK);
    assertThat(calls.waiting()).isZero();
  }

  @Test
  void shouldRecoverFromARingFullOfLeasesGivenBack() {
    for (int i = 0; i < 5_000; i++) {
      calls.giveBackLease(i);
    }
    assertThatThrownBy(() -> ping(BOUND_NS))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("full");
    serve();
    long end = System.nanoTime() + BOUND_NS;
    while (manager.queries.hasNext() && System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    assertThat(ping(BOUND_NS)).isEqualTo(Status.OK);
  }

  @Test
  void shouldSendNothingForALeaseWhenTheSessionIsOverOrNobodyMayCall() {
    List<QueryCalls.Call> taken = new ArrayList<>();
    while (taken.size() < QueryCalls.MAX_CALLS) {
      taken.add(calls.take());
    }
    calls.giveBackLease(1);
    assertThat(manager.queries.hasNext()).isFalse();
    taken.forEach(calls::giveBack);
    manager.session.end("ended by the test");
    calls.giveBackLease(2);
    assertThat(manager.queries.hasNext()).isFalse();
    assertThat(calls.waiting()).isZero();
  }

  @Test
  void shouldHandEachAnswerToItsCaller() throws Exception {
    serve();
    BlockHashes hashes = BlockHashes.of(new byte[16 * 8], 16);
    int threads = 4;
    CountDownLatch begin = new CountDownLatch(threads);
    try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
      List<Future<Integer>> results = new ArrayList<>();
      for (int t = 0; t < threads; t++) {
        results.add(
            executor.submit(() -> {
              begin.countDown();
              begin.await(20, TimeUnit.SECONDS);
              int good = 0;
              for (int i = 0; i < 500; i++) {
                good += ping(BOUND_NS) == Status.OK ? 1 : 0;
                QueryCalls.Call call = calls.take();
                calls.call(call, Opcode.LOOKUP, 0, 0, call.prefix(namespace, hashes), BOUND_NS);
                LookupResult result = LookupAnswer.read(call.data, FakeManager.EPOCH);
                good += result.prefix() == 5 && result.leases().get(0).id() == 4711 ? 1 : 0;
                calls.giveBack(call);
              }
              return good;
            }));
      }
      for (Future<Integer> result : results) {
        assertThat(result.get(40, TimeUnit.SECONDS)).isEqualTo(1000);
      }
    }
  }

  @Test
  void shouldAllocateNothingInSteadyState() {
    serve();
    BlockHashes hashes = BlockHashes.of(new byte[16 * 8], 16);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long startNs = System.nanoTime();
    int rounds = 200;
    long allocated;
    do { // the first rounds load classes and compile; how many depends on the load of the machine
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < rounds; i++) {
        ping(BOUND_NS);
        QueryCalls.Call call = calls.take();
        calls.call(call, Opcode.LOOKUP, 0, 0, call.prefix(namespace, hashes), BOUND_NS);
        calls.giveBack(call);
      }
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    } while (allocated >= rounds && System.nanoTime() - startNs < LONG_NS);
    assertThat(allocated).isLessThan(rounds);
  }

  @Test
  void shouldFailTypedWithinItsBound() {
    assertThatThrownBy(() -> ping(SHORT_NS))
        .isInstanceOf(OrbitKvTimeoutException.class)
        .hasMessageContaining("no answer");
  }

  @Test
  void shouldReleaseTheLeaseOfALateAnswer() {
    QueryCalls.Call call = calls.take();
    BlockHashes hashes = BlockHashes.of(new byte[16 * 8], 16);
    assertThatThrownBy(
            () -> calls.call(call, Opcode.LOOKUP, 0, 0, call.prefix(namespace, hashes), SHORT_NS))
        .isInstanceOf(OrbitKvTimeoutException.class);
    calls.giveBack(call);
    assertThat(answer()).isTrue();
    assertThat(calls.tryTakeBaton()).isTrue();
    calls.readReplies();
    calls.returnBaton();
    assertThat(manager.queries.tryRead(manager.command)).isTrue();
    assertThat(manager.command.opcode).isEqualTo(Opcode.RELEASE);
    assertThat(manager.command.scalar0).isEqualTo(4711);
  }

  @Test
  void shouldFailTypedWhenTheSessionIsOver() {
    manager.closeSession();
    assertThatThrownBy(() -> ping(BOUND_NS))
        .isInstanceOfSatisfying(
            OrbitKvException.class, e -> assertThat(e.status()).isEqualTo(Status.SESSION_ENDED));
  }

  @Test
  void shouldLimitWaitingCalls() {
    for (int i = 0; i < QueryCalls.MAX_CALLS; i++) {
      calls.take();
    }
    assertThatThrownBy(calls::take)
        .isInstanceOfSatisfying(
            OrbitKvException.class, e -> assertThat(e.status()).isEqualTo(Status.LIMIT));
  }

  @Test
  void shouldWakeASleepingManagerOnly() {
    manager.session.trySubmit(0, Opcode.PING, 1, 0, 0, null);
    assertThat(manager.wakes).isZero();
    io.orbitkv.channel.Memory.putIntVolatile(
        manager.channel, io.orbitkv.channel.ChannelDescriptor.MANAGER_SLEEPS_OFFSET, 1);
    manager.session.trySubmit(0, Opcode.PING, 1, 0, 0, null);
    assertThat(manager.wakes).isEqualTo(1);
  }
}
