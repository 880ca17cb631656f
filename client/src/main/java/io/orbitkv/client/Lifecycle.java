package io.orbitkv.client;

import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Failure;
import io.orbitkv.channel.proto.Hello;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.linux.Errno;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.PidFd;
import io.orbitkv.linux.Received;
import io.orbitkv.linux.UnixConnection;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * Lifecycle frames over one connection. Thread-safe: answers come in the order of the requests, and
 * one thread reads them; it also sees the end of the connection.
 */
final class Lifecycle implements AutoCloseable {
  private static final System.Logger LOGGER = System.getLogger(Lifecycle.class.getName());
  private static final int[] NO_FDS = {};
  private static final int READ_INTERVAL_MS = 1000;

  /** An answer and the descriptors that came with it, which belong to who takes it. */
  record Answer(ManagerFrame frame, long epoch, List<Fd> fds) {
    void closeFds() {
      fds.forEach(Fd::close);
    }
  }

  private final UnixConnection connection;
  private final ConcurrentLinkedQueue<CompletableFuture<Answer>> waiting =
      new ConcurrentLinkedQueue<>();
  private final Object sendLock = new Object();
  private final Thread reader;
  private final Consumer<String> onEnd;
  private volatile long epoch;
  private volatile String ended;

  /** How calls fail after the end. */
  private volatile Status endedStatus = Status.SESSION_ENDED;

  private Lifecycle(UnixConnection connection, String name, Consumer<String> onEnd) {
    this.connection = connection;
    this.onEnd = onEnd;
    this.reader = Thread.ofPlatform().daemon().name(name + "-lifecycle").unstarted(this::read);
  }

  /**
   * Connects.
   *
   * @param onEnd told once, with the reason, when the connection has ended; called by the reader
   * @throws ManagerUnavailableException when nobody listens
   */
  static Lifecycle connect(Path socket, int timeoutMs, String name, Consumer<String> onEnd) {
    UnixConnection connection;
    try {
      connection = UnixConnection.connect(socket, timeoutMs);
    } catch (LinuxException e) {
      if (e.errno() == Errno.EACCES || e.errno() == Errno.EPERM) {
        throw new OrbitKvException(
            Status.FORBIDDEN,
            "Manager may not be used: socket=" + socket + ": " + e.getMessage(),
            e);
      }
      throw new ManagerUnavailableException(
          "no Manager: socket=" + socket + ": " + e.getMessage(), e);
    }
    Lifecycle lifecycle = new Lifecycle(connection, name, onEnd);
    lifecycle.reader.start();
    return lifecycle;
  }

  static Hello.Builder hello(String instanceId, String clientName) {
    return Hello.newBuilder()
        .setChannelVersion(Protocol.CHANNEL_VERSION)
        .setLifecycleVersion(Protocol.LIFECYCLE_VERSION)
        .setInstanceId(instanceId)
        .setClientName(clientName)
        .setSoftwareVersion(softwareVersion());
  }

  private static String softwareVersion() {
    String version = Lifecycle.class.getPackage().getImplementationVersion();
    return version == null ? "development" : version;
  }

  /** The Manager's process, or null when the kernel does not give it. */
  PidFd manager() {
    try {
      Fd fd = connection.peerPidFd();
      return fd == null ? PidFd.open(connection.peer().pid()) : PidFd.adopt(fd);
    } catch (LinuxException e) { // a diagnostic only
      LOGGER.log(System.Logger.Level.DEBUG, "the Manager's process can not be observed", e);
      return null;
    }
  }

  /** From now on every frame of the other side must carry this epoch. */
  void expectEpoch(long value) {
    epoch = value;
  }

  /** Sends a frame and waits for its answer. */
  Answer call(ClientFrame frame, long timeoutMs) {
    return call(frame, timeoutMs, Lifecycle::ignore);
  }

  /**
   * As {@link #call(ClientFrame, long)}.
   *
   * @param late gets an answer that comes when nobody waits for it any longer, on the thread that
   *     reads; its descriptors are closed afterwards
   */
  Answer call(ClientFrame frame, long timeoutMs, Consumer<Answer> late) {
    return check(frame, await(frame, submit(frame, false, timeoutMs), timeoutMs, late));
  }

  /** As {@link #call(ClientFrame, long)}, with this process's credentials. */
  Answer callWithCredentials(ClientFrame frame, long timeoutMs) {
    return check(frame, await(frame, submit(frame, true, timeoutMs), timeoutMs, Lifecycle::ignore));
  }

  /** As {@link #call(ClientFrame, long)}, also on a thread that is interrupted. */
  Answer callUninterruptibly(ClientFrame frame, long timeoutMs) {
    CompletableFuture<Answer> future = submit(frame, false, timeoutMs);
    try {
      return check(frame, Uninterruptibly.get(future, TimeUnit.MILLISECONDS.toNanos(timeoutMs)));
    } catch (TimeoutException e) {
      throw timedOut(frame, future, timeoutMs, Lifecycle::ignore);
    } catch (ExecutionException e) {
      throw failed(frame, e);
    }
  }

  /** Sends a frame whose answer is of no interest. */
  void post(ClientFrame frame, long timeoutMs) {
    abandon(submit(frame, false, timeoutMs), Lifecycle::ignore);
  }

  private CompletableFuture<Answer> submit(ClientFrame frame, boolean credentials, long timeoutMs) {
    CompletableFuture<Answer> future = new CompletableFuture<>();
    synchronized (sendLock) {
      requireConnected(frame);
      waiting.add(future);
      try {
        send(frame, credentials, (int) timeoutMs);
      } catch (LinuxException | IllegalStateException e) {
        connection.shutdown(); // part of the frame may have gone
        throw ended(frame, e.getMessage());
      }
    }
    if (ended != null) {
      failWaiting();
    }
    return future;
  }

  private void requireConnected(ClientFrame frame) {
    if (ended != null) {
      throw ended(frame, ended);
    }
  }

  private static OrbitKvException ended(ClientFrame frame, String reason) {
    return new OrbitKvException(
        Status.SESSION_ENDED, frame.getBodyCase() + ": connection has ended: " + reason);
  }

  private void send(ClientFrame frame, boolean credentials, int timeoutMs) {
    byte[] body = frame.toByteArray();
    byte[] bytes = new byte[FrameHeader.BYTES + body.length];
    MemorySegment segment = MemorySegment.ofArray(bytes);
    new FrameHeader(Protocol.LIFECYCLE_VERSION, epoch, body.length).writeTo(segment);
    System.arraycopy(body, 0, bytes, FrameHeader.BYTES, body.length);
    if (credentials) {
      connection.sendWithCredentials(segment, 0, bytes.length, NO_FDS, timeoutMs);
    } else {
      connection.send(segment, 0, bytes.length, timeoutMs);
    }
  }

  private static Answer await(
      ClientFrame frame, CompletableFuture<Answer> future, long timeoutMs, Consumer<Answer> late) {
    try {
      return future.get(timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      throw timedOut(frame, future, timeoutMs, late);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      abandon(future, late);
      throw new OrbitKvException(Status.CANCELLED, "interrupted: frame=" + frame.getBodyCase(), e);
    } catch (ExecutionException e) {
      throw failed(frame, e);
    }
  }

  private static OrbitKvTimeoutException timedOut(
      ClientFrame frame, CompletableFuture<Answer> future, long timeoutMs, Consumer<Answer> late) {
    abandon(future, late);
    return new OrbitKvTimeoutException(
        "no answer: frame=" + frame.getBodyCase() + ", ms=" + timeoutMs);
  }

  private static OrbitKvException failed(ClientFrame frame, ExecutionException e) {
    Status status =
        e.getCause() instanceof OrbitKvException cause ? cause.status() : Status.SESSION_ENDED;
    return new OrbitKvException(status, frame.getBodyCase() + ": " + e.getCause().getMessage(), e);
  }

  private static void ignore(Answer late) {}

  private static void abandon(CompletableFuture<Answer> future, Consumer<Answer> late) {
    var _ =
        future.thenAccept(answer -> {
          try {
            late.accept(answer);
          } finally {
            answer.closeFds();
          }
        });
  }

  private static Answer check(ClientFrame frame, Answer answer) {
    if (!answer.frame.hasFailure()) {
      return answer;
    }
    answer.closeFds();
    Failure failure = answer.frame.getFailure();
    Status status = Status.of(failure.getCode());
    String message = frame.getBodyCase() + ": " + failure.getMessage();
    if (status == Status.VERSION_MISMATCH) {
      message +=
          "; client has channel="
              + Protocol.CHANNEL_VERSION
              + ", lifecycle="
              + Protocol.LIFECYCLE_VERSION
              + "; Manager has channel="
              + failure.getChannelVersion()
              + ", lifecycle="
              + failure.getLifecycleVersion();
    }
    throw new OrbitKvException(status, message);
  }

  /** Fails when the answer is not of the kind that was asked for. */
  static void require(Answer answer, boolean fits) {
    if (!fits) {
      answer.closeFds();
      throw new OrbitKvException(
          Status.INTERNAL, "unexpected answer: frame=" + answer.frame().getBodyCase());
    }
  }

  private void read() {
    String reason = "the Manager has closed it or is gone";
    List<Fd> fds = new ArrayList<>();
    try {
      while (readFrame(fds)) {
        fds = new ArrayList<>();
      }
    } catch (ProtocolException e) {
      reason = e.getMessage();
      if (e.status() == Status.VERSION_MISMATCH) {
        endedStatus = Status.VERSION_MISMATCH;
      }
    } catch (LinuxException | IllegalStateException | IOException e) {
      reason = e.getMessage();
    } finally {
      fds.forEach(Fd::close);
      ended = reason;
      connection.close();
      failWaiting();
      onEnd.accept(reason);
    }
  }

  private boolean readFrame(List<Fd> fds) throws IOException {
    byte[] header = new byte[FrameHeader.BYTES];
    if (!receive(header, fds)) {
      return false;
    }
    FrameHeader parsed = FrameHeader.readFrom(MemorySegment.ofArray(header));
    if (epoch != 0 && parsed.epoch() != epoch) {
      throw new ProtocolException(
          Status.EPOCH_MISMATCH, "frame: epoch=%x, wanted=%x".formatted(parsed.epoch(), epoch));
    }
    byte[] body = new byte[parsed.length()];
    if (!receive(body, fds)) {
      return false;
    }
    Answer answer = new Answer(ManagerFrame.parseFrom(body), parsed.epoch(), List.copyOf(fds));
    CompletableFuture<Answer> future = waiting.poll();
    if (future == null) {
      throw new ProtocolException(
          Status.INVALID, "frame without a request: " + answer.frame.getBodyCase());
    }
    future.complete(answer);
    return true;
  }

  private boolean receive(byte[] into, List<Fd> fds) {
    MemorySegment buffer = MemorySegment.ofArray(into);
    int at = 0;
    while (at < into.length) {
      Received received = connection.receive(buffer, at, into.length - at, READ_INTERVAL_MS);
      fds.addAll(received.fds());
      if (received.byteCount() == Received.END_OF_STREAM) {
        return false;
      }
      at += Math.max(0, received.byteCount()); // TIMED_OUT is negative
    }
    return true;
  }

  private void failWaiting() {
    CompletableFuture<Answer> future = waiting.poll();
    while (future != null) {
      future.completeExceptionally(
          new OrbitKvException(endedStatus, "connection has ended: " + ended));
      future = waiting.poll();
    }
  }

  /** Idempotent; waits a bounded time for the reader. */
  @Override
  public void close() {
    connection.close();
    var _ = Uninterruptibly.join(reader, TimeUnit.MILLISECONDS.toNanos(READ_INTERVAL_MS));
  }
}
