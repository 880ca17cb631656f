package io.orbitkv.manager;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Parser;
import io.orbitkv.channel.FrameHeader;
import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.ProtocolException;
import io.orbitkv.channel.Status;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.ManagerFrame;
import io.orbitkv.linux.Errno;
import io.orbitkv.linux.LinuxException;
import io.orbitkv.linux.Received;
import io.orbitkv.linux.UnixConnection;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Lifecycle frames over a Unix connection. Belongs to one thread. What arrives is untrusted: memory
 * for a body grows with the bytes that have come, not with the length that was claimed.
 */
final class FrameChannel {
  /** Bound for the rest of a frame once its first byte is there, and for sending one. */
  static final int FRAME_MS = 5_000;

  private static final int FIRST_BODY_BYTES = 64 << 10;
  private static final int NOBODY = 0;
  private static final int MIXED = -1;
  private static final int UNSEEN = -2;

  private final UnixConnection connection;
  private final long epochLow;
  private final Parser<ClientFrame> parser = ClientFrame.parser();
  private final byte[] headerBytes = new byte[FrameHeader.BYTES];
  private int senderPid;
  private long frameEpoch;

  FrameChannel(UnixConnection connection, long epochLow) {
    this.connection = connection;
    this.epochLow = epochLow;
  }

  /**
   * Receives one frame.
   *
   * @param timeoutMs bound of the wait for its first byte
   * @return null at the end of the stream
   * @throws ProtocolException when the bytes are no frame: the connection is of no more use
   * @throws LinuxException with ETIMEDOUT when the time passed, or when the connection broke
   */
  ClientFrame receive(int timeoutMs) {
    senderPid = UNSEEN;
    int first = receive(headerBytes, 0, headerBytes.length, timeoutMs);
    if (first == Received.END_OF_STREAM) {
      return null;
    }
    long deadlineNs = System.nanoTime() + FRAME_MS * 1_000_000L;
    fill(headerBytes, first, FrameHeader.BYTES, deadlineNs);
    FrameHeader header = FrameHeader.readFrom(MemorySegment.ofArray(headerBytes));
    frameEpoch = header.epoch();
    byte[] body = receiveBody(header.length(), deadlineNs);
    try {
      return parser.parseFrom(body, 0, header.length());
    } catch (InvalidProtocolBufferException e) {
      throw new ProtocolException(Status.INVALID, "frame: body is no message: " + e.getMessage());
    }
  }

  private byte[] receiveBody(int length, long deadlineNs) {
    byte[] body = new byte[Math.min(length, FIRST_BODY_BYTES)];
    int filled = 0;
    while (filled < length) {
      if (filled == body.length) {
        body = Arrays.copyOf(body, (int) Math.min(length, 2L * body.length));
      }
      fill(body, filled, body.length, deadlineNs);
      filled = body.length;
    }
    return body;
  }

  private void fill(byte[] into, int from, int to, long deadlineNs) {
    int at = from;
    while (at < to) {
      long leftMs = Math.max(0, (deadlineNs - System.nanoTime()) / 1_000_000);
      int count = receive(into, at, to - at, (int) leftMs);
      if (count == Received.END_OF_STREAM) {
        throw new ProtocolException(
            Status.INVALID, "frame: stream ended inside, bytes=" + at + ", wanted=" + to);
      }
      at += count;
    }
  }

  private int receive(byte[] into, int at, int length, int timeoutMs) {
    Received received = connection.receive(MemorySegment.ofArray(into), at, length, timeoutMs);
    received.closeFds(); // a client has none to give
    if (received.byteCount() == Received.TIMED_OUT) {
      throw new LinuxException("recvmsg", Errno.ETIMEDOUT, "timeoutMs=" + timeoutMs);
    }
    if (received.byteCount() > 0) {
      int pid = received.credentials() == null ? NOBODY : received.credentials().pid();
      senderPid = senderPid == UNSEEN || senderPid == pid ? pid : MIXED;
    }
    return received.byteCount();
  }

  /**
   * Process that sent every byte of the last frame, by the kernel's word; 0 or less when unknown.
   */
  int senderPid() {
    return senderPid;
  }

  /** Epoch in the header of the last frame. */
  long frameEpoch() {
    return frameEpoch;
  }

  /** Sends one frame with descriptors. */
  void send(ManagerFrame frame, int... fds) {
    byte[] body = frame.toByteArray();
    byte[] bytes = new byte[FrameHeader.BYTES + body.length];
    MemorySegment segment = MemorySegment.ofArray(bytes);
    new FrameHeader(Protocol.LIFECYCLE_VERSION, epochLow, body.length).writeTo(segment);
    System.arraycopy(body, 0, bytes, FrameHeader.BYTES, body.length);
    connection.send(segment, 0, bytes.length, fds, FRAME_MS);
  }
}
