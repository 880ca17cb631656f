package io.orbitkv.manager;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.Close;
import io.orbitkv.channel.proto.ConfirmMappings;
import io.orbitkv.channel.proto.ConfirmSession;
import io.orbitkv.channel.proto.GroupFields;
import io.orbitkv.channel.proto.Hello;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.channel.proto.Register;
import io.orbitkv.channel.proto.StateFields;
import io.orbitkv.channel.proto.Welcome;
import io.orbitkv.linux.Fd;
import io.orbitkv.linux.Received;
import io.orbitkv.linux.UnixConnection;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Speaks lifecycle frames by hand. */
final class RawClient implements AutoCloseable {
  private static final int WAIT_MS = 10_000;

  final UnixConnection connection;
  final List<Fd> fds = new ArrayList<>();
  long epochLow;
  ByteString token = ByteString.EMPTY;

  RawClient(Path socket) {
    connection = UnixConnection.connect(socket, WAIT_MS);
  }

  void sendBytes(byte[] bytes) {
    connection.send(MemorySegment.ofArray(bytes), 0, bytes.length, WAIT_MS);
  }

  /** Frames of this client, one behind the other. */
  byte[] bytes(ClientFrame... frames) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (ClientFrame frame : frames) {
      byte[] body = frame.toByteArray();
      byte[] header = new byte[FrameHeader.BYTES];
      new FrameHeader(Protocol.LIFECYCLE_VERSION, epochLow, body.length)
          .writeTo(MemorySegment.ofArray(header));
      all.writeBytes(header);
      all.writeBytes(body);
    }
    return all.toByteArray();
  }

  void send(ClientFrame frame) {
    byte[] bytes = bytes(frame);
    connection.sendWithCredentials(
        MemorySegment.ofArray(bytes), 0, bytes.length, new int[0], WAIT_MS);
  }

  /** The next frame; null at the end of the stream. */
  ManagerFrame receive() {
    byte[] header = read(FrameHeader.BYTES);
    if (header == null) {
      return null;
    }
    byte[] body = read(FrameHeader.readFrom(MemorySegment.ofArray(header)).length());
    try {
      return ManagerFrame.parseFrom(body);
    } catch (InvalidProtocolBufferException e) {
      throw new AssertionError(e);
    }
  }

  private byte[] read(int length) {
    byte[] bytes = new byte[length];
    int at = 0;
    while (at < length) {
      Received received =
          connection.receive(MemorySegment.ofArray(bytes), at, length - at, WAIT_MS);
      fds.addAll(received.fds());
      if (received.byteCount() == Received.TIMED_OUT) {
        throw new AssertionError("nothing came");
      }
      if (received.byteCount() == Received.END_OF_STREAM) {
        return null;
      }
      at += received.byteCount();
    }
    return bytes;
  }

  ManagerFrame ask(ClientFrame frame) {
    send(frame);
    return receive();
  }

  static ClientFrame hello(int channelVersion, boolean adminOnly) {
    return hello(channelVersion, adminOnly, "engine", "raw");
  }

  private static ClientFrame hello(
      int channelVersion, boolean adminOnly, String instance, String name) {
    return ClientFrame.newBuilder()
        .setHello(
            Hello.newBuilder()
                .setChannelVersion(channelVersion)
                .setLifecycleVersion(Protocol.LIFECYCLE_VERSION)
                .setInstanceId(instance)
                .setClientName(name)
                .setAdminOnly(adminOnly))
        .build();
  }

  Welcome handshake() {
    return handshake("engine");
  }

  Welcome handshake(String instance) {
    return handshake(instance, "raw");
  }

  Welcome handshake(String instance, String name) {
    Welcome welcome = ask(hello(Protocol.CHANNEL_VERSION, false, instance, name)).getWelcome();
    take(welcome);
    return welcome;
  }

  void adminHandshake() {
    take(ask(hello(Protocol.CHANNEL_VERSION, true)).getWelcome());
  }

  private void take(Welcome welcome) {
    token = welcome.getSessionToken();
    epochLow = ByteBuffer.wrap(welcome.getManagerEpoch().toByteArray()).getLong(Long.BYTES);
  }

  ManagerFrame confirm() {
    return ask(
        ClientFrame.newBuilder()
            .setConfirmSession(ConfirmSession.newBuilder().setSessionToken(token))
            .build());
  }

  ManagerFrame register(long blockBytes, boolean restoreOnly) {
    StateFields state =
        StateFields.newBuilder()
            .setModel("m")
            .setComputeDtype("bf16")
            .setKvDtype("bf16")
            .setLayout("layer-page")
            .setBlockTokens(16)
            .addGroups(
                GroupFields.newBuilder().setKind("prefix").setLayers(2).setBlockBytes(blockBytes))
            .setTpSize(1)
            .setPpSize(1)
            .setDcpSize(1)
            .setHashScheme("sha256")
            .setHashBytes(16)
            .setEngine("test")
            .build();
    return ask(
        ClientFrame.newBuilder()
            .setRegister(
                Register.newBuilder()
                    .setSessionToken(token)
                    .setState(state)
                    .addGroupPages(8)
                    .setRestoreOnly(restoreOnly)
                    .setDevice("host"))
            .build());
  }

  ManagerFrame confirmMappings(int id, int generation) {
    return ask(
        ClientFrame.newBuilder()
            .setConfirmMappings(
                ConfirmMappings.newBuilder().setRegistrationId(id).setGeneration(generation))
            .build());
  }

  ManagerFrame sayClose() {
    return ask(ClientFrame.newBuilder().setClose(Close.getDefaultInstance()).build());
  }

  @Override
  public void close() {
    connection.close();
    fds.forEach(Fd::close);
  }
}
