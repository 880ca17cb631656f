package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class HeaderTest {
  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    arena.close();
  }

  private static ProtocolException refusal(MemorySegment frame) {
    return catchThrowableOfType(ProtocolException.class, () -> FrameHeader.readFrom(frame));
  }

  private MemorySegment frame() {
    MemorySegment bytes = arena.allocate(FrameHeader.BYTES);
    new FrameHeader(Protocol.LIFECYCLE_VERSION, 5, Protocol.MAX_FRAME_BYTES).writeTo(bytes);
    return bytes;
  }

  @Test
  void shouldAcceptFrameOfLargestSize() {
    assertThat(FrameHeader.readFrom(frame()).length()).isEqualTo(64 << 20);
  }

  @Test
  void shouldRefuseForeignFrame() {
    MemorySegment bytes = frame();
    Memory.putByte(bytes, 3, (byte) 'X');

    assertThat(refusal(bytes).status()).isEqualTo(Status.INVALID);
    assertThat(refusal(bytes)).hasMessageContaining("magic=0x58564b4f, wanted=0x4c564b4f");
  }

  @Test
  void shouldNameBothVersionsOfFrame() {
    MemorySegment bytes = frame();
    Memory.putShort(bytes, 4, (short) -1);

    assertThat(refusal(bytes).status()).isEqualTo(Status.VERSION_MISMATCH);
    assertThat(refusal(bytes))
        .hasMessageContaining("version=65535")
        .hasMessageContaining("this side has version=1");
  }

  @Test
  void shouldRefuseFrameAboveLimit() {
    MemorySegment bytes = frame();
    for (int length : new int[] {Protocol.MAX_FRAME_BYTES + 1, -1, Integer.MIN_VALUE}) {
      Memory.putInt(bytes, 16, length);
      assertThat(refusal(bytes).status()).isEqualTo(Status.LIMIT);
      assertThat(refusal(bytes))
          .hasMessageContaining("bytes=" + Integer.toUnsignedString(length))
          .hasMessageContaining("limit=67108864");
    }
  }

  private static ProtocolException channelRefusal(MemorySegment region) {
    return catchThrowableOfType(ProtocolException.class, () -> ChannelDescriptor.check(region));
  }

  @Test
  void shouldRefuseChannelThatDiffers() {
    MemorySegment region = arena.allocate(ChannelDescriptor.REGION_BYTES, 4096);
    assertThat(channelRefusal(region).status())
        .as("not formatted")
        .isEqualTo(Status.VERSION_MISMATCH);
    ChannelDescriptor.format(region, 1, 2, 3);

    assertThat(channelRefusal(region.asSlice(0, ChannelDescriptor.REGION_BYTES - 8)))
        .hasMessageContaining("wanted=" + ChannelDescriptor.REGION_BYTES);
    record Field(String name, long offset) {}
    for (Field field :
        new Field[] {
          new Field("magic", 0),
          new Field("version", 8),
          new Field("ringCapacity", 12),
          new Field("byteRingBytes", 16),
          new Field("totalBytes", 24)
        }) {
      byte was = Memory.getByte(region, field.offset());
      Memory.putByte(region, field.offset(), (byte) (was + 1));
      assertThat(channelRefusal(region)).hasMessageContaining(field.name() + "=");
      Memory.putByte(region, field.offset(), was);
    }
    ChannelDescriptor.check(region);
  }

  @Test
  void shouldKeepLinesOfTheTwoProcessesApart() {
    assertThat(ChannelDescriptor.BYTE_RINGS_OFFSET % 4096).isZero();
    for (int ring = 0; ring < ChannelDescriptor.RINGS; ring++) {
      assertThat(ChannelDescriptor.ringOffset(ring) % 128).isZero();
      assertThat(ChannelDescriptor.byteRingOffset(ring) % 4096).isZero();
    }
  }
}
