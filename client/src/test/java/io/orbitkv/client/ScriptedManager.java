package io.orbitkv.client;

import com.google.protobuf.ByteString;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Closed;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.Registered;
import io.orbitkv.channel.proto.RegistrationReady;
import io.orbitkv.channel.proto.SessionConfirmed;
import io.orbitkv.channel.proto.Unregistered;
import io.orbitkv.channel.proto.Welcome;
import io.orbitkv.linux.EventFd;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Mapping;
import io.orbitkv.linux.Memfd;
import io.orbitkv.linux.Received;
import io.orbitkv.linux.UnixConnection;
import io.orbitkv.linux.UnixListener;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * A Manager for one client at a time, as far as lifecycle frames go; a test may change its answers.
 */
final class ScriptedManager implements AutoCloseable {
  static final int REGISTRATION_ID = 7;
  static final int GENERATION = 3;
  private static final int BOUND_MS = 20_000;
  private static final int LOOK_MS = 100;
  private static final int[] NO_FDS = {};

  /** Frames in the order in which they came. */
  final LinkedBlockingQueue<ClientFrame> received = new LinkedBlockingQueue<>();

  /** Answer to a frame, or null for none; may block for a time. */
  volatile Function<ClientFrame, ManagerFrame> script = ScriptedManager::usual;

  /** Lifecycle version in the header of its frames. */
  volatile int version = Protocol.LIFECYCLE_VERSION;

  private final UnixListener listener;
  private final Thread thread;
  private final Fd channel = memory("channel", ChannelDescriptor.REGION_BYTES);
  private final Fd grants = memory("grants", GrantTable.REGION_BYTES);
  private final List<Fd> arenas = new CopyOnWriteArrayList<>();
  private final List<Mapping> mappings = new ArrayList<>();
  private volatile UnixConnection current;
  private volatile boolean closed;
  private final EventFd[] wakes = {EventFd.create(), EventFd.create(), EventFd.create()};

  ScriptedManager(Path socket) {
    listener = UnixListener.bind(socket, 0600);
    thread = Thread.ofPlatform().daemon().start(this::serve);
  }

  private static Fd memory(String name, long bytes) {
    Fd fd = Memfd.create(name, bytes, Memfd.PageSize.NORMAL);
    try (Mapping mapping = Mapping.map(fd, bytes, Mapping.Access.READ_WRITE, false)) {
      if (bytes == GrantTable.REGION_BYTES) {
        GrantTable.format(mapping.segment());
      } else {
        ChannelDescriptor.format(mapping.segment(), 0, FakeManager.EPOCH, 0);
      }
    }
    return fd;
  }

  /** The answer of a Manager with an empty pool. */
  static ManagerFrame usual(ClientFrame frame) {
    ManagerFrame.Builder answer = ManagerFrame.newBuilder();
    switch (frame.getBodyCase()) {
      case HELLO -> answer.setWelcome(welcome());
      case CONFIRM_SESSION ->
          answer.setSessionConfirmed(SessionConfirmed.newBuilder().setMayPublish(true));
      case REGISTER -> answer.setRegistered(registered());
      case CONFIRM_MAPPINGS -> answer.setRegistrationReady(RegistrationReady.getDefaultInstance());
      case UNREGISTER -> answer.setUnregistered(Unregistered.getDefaultInstance());
      case CLOSE -> answer.setClosed(Closed.getDefaultInstance());
      default -> throw new AssertionError("unexpected frame: " + frame);
    }
    return answer.build();
  }

  /** The side of the Manager in rings and grants, with arenas that go out with registrations. */
  FakeManager withArenas() {
    MemorySegment[] segments = new MemorySegment[2];
    for (int i = 0; i < segments.length; i++) {
      Fd fd = Memfd.create("arena", FakeManager.ARENA_BYTES, Memfd.PageSize.NORMAL);
      arenas.add(fd);
      segments[i] = map(fd, FakeManager.ARENA_BYTES);
    }
    script = frame -> frame.hasRegister() ? registeredWithArenas() : usual(frame);
    GrantTable table = GrantTable.open(map(grants, GrantTable.REGION_BYTES));
    return new FakeManager(map(channel, ChannelDescriptor.REGION_BYTES), table, segments);
  }

  private MemorySegment map(Fd fd, long bytes) {
    Mapping mapping = Mapping.map(fd, bytes, Mapping.Access.READ_WRITE, false);
    mappings.add(mapping);
    return mapping.segment();
  }

  private ManagerFrame registeredWithArenas() {
    Registered.Builder registered = registered();
    arenas.forEach(_ -> registered.addArenaBytes(FakeManager.ARENA_BYTES));
    return ManagerFrame.newBuilder().setRegistered(registered).build();
  }

  /** Wakes the client as after a move of a grant. */
  void wakeClient() {
    wakes[1].signal();
    wakes[2].signal();
  }

  private static Welcome welcome() {
    ByteBuffer epoch = ByteBuffer.allocate(16).putLong(8, FakeManager.EPOCH);
    return Welcome.newBuilder()
        .setManagerEpoch(ByteString.copyFrom(epoch.array()))
        .setSessionToken(ByteString.copyFrom(new byte[16]))
        .setChannelBytes(ChannelDescriptor.REGION_BYTES)
        .setGrantBytes(GrantTable.REGION_BYTES)
        .build();
  }

  static Registered.Builder registered() {
    return Registered.newBuilder()
        .setRegistrationId(REGISTRATION_ID)
        .setGeneration(GENERATION)
        .setNamespace(ByteString.copyFrom(new byte[Protocol.NAMESPACE_BYTES]));
  }

  /** Waits for the next frame of a kind. */
  ClientFrame await(ClientFrame.BodyCase kind) throws InterruptedException {
    ClientFrame frame = received.poll(BOUND_MS, TimeUnit.MILLISECONDS);
    while (frame != null && frame.getBodyCase() != kind) {
      frame = received.poll(BOUND_MS, TimeUnit.MILLISECONDS);
    }
    if (frame == null) {
      throw new AssertionError("frame did not come: " + kind);
    }
    return frame;
  }

  private void serve() {
    while (!closed) {
      try (UnixConnection connection = listener.accept(LOOK_MS)) {
        if (connection != null) {
          current = connection;
          serve(connection);
        }
      } catch (LinuxException | IllegalStateException | IOException e) {
        System.getLogger("test").log(System.Logger.Level.DEBUG, "client has left", e);
      }
    }
  }

  private void serve(UnixConnection connection) throws IOException {
    ClientFrame frame = read(connection);
    while (frame != null) {
      received.add(frame);
      ManagerFrame answer = script.apply(frame);
      if (answer != null) {
        send(connection, answer);
      }
      frame = read(connection);
    }
  }

  /** Ends the connection of now, as the end of a Manager does. */
  void hangUp() {
    current.shutdown();
  }

  private static ClientFrame read(UnixConnection connection) throws IOException {
    byte[] header = readBytes(connection, FrameHeader.BYTES);
    if (header == null) {
      return null;
    }
    int length = FrameHeader.readFrom(MemorySegment.ofArray(header)).length();
    return ClientFrame.parseFrom(readBytes(connection, length));
  }

  private static byte[] readBytes(UnixConnection connection, int length) {
    byte[] bytes = new byte[length];
    int at = 0;
    while (at < length) {
      Received part = connection.receive(MemorySegment.ofArray(bytes), at, length - at, BOUND_MS);
      if (part.byteCount() <= 0) {
        return null;
      }
      at += part.byteCount();
    }
    return bytes;
  }

  private void send(UnixConnection connection, ManagerFrame frame) {
    byte[] body = frame.toByteArray();
    byte[] bytes = new byte[FrameHeader.BYTES + body.length];
    MemorySegment segment = MemorySegment.ofArray(bytes);
    new FrameHeader(version, FakeManager.EPOCH, body.length).writeTo(segment);
    System.arraycopy(body, 0, bytes, FrameHeader.BYTES, body.length);
    int[] fds = NO_FDS;
    if (frame.hasWelcome()) {
      fds =
          new int[] {channel.value(), grants.value(), wakes[0].fd(), wakes[1].fd(), wakes[2].fd()};
    } else if (frame.hasRegistered()) {
      fds = arenas.stream().mapToInt(Fd::value).toArray();
    }
    connection.send(segment, 0, bytes.length, fds, BOUND_MS);
  }

  @Override
  public void close() {
    closed = true;
    if (current != null) {
      current.shutdown();
    }
    listener.close();
    var _ = Uninterruptibly.join(thread, TimeUnit.MILLISECONDS.toNanos(BOUND_MS));
    mappings.forEach(Mapping::close);
    arenas.forEach(Fd::close);
    channel.close();
    grants.close();
    for (EventFd wake : wakes) {
      wake.close();
    }
  }
}
