package io.orbitkv.client;

import io.orbitkv.channel.Memory;
import io.orbitkv.channel.PublishRequest;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/** Data of a PUBLISH command. */
record PublishSpan(
    int registrationId, int registrationGeneration, int hashBytes, List<PublishItem> items)
    implements SpanWriter {
  /** Bytes, which may exceed the largest span. */
  long byteSize() {
    long bytes = PublishRequest.headerBytes();
    for (PublishItem item : items) {
      bytes += PublishRequest.sectionBytes(item.pages().length, hashBytes);
    }
    return bytes;
  }

  @Override
  public int spanBytes() {
    return Math.toIntExact(byteSize());
  }

  @Override
  public void writeTo(MemorySegment into, long at) {
    int blocks = 0;
    long section = at + PublishRequest.headerBytes();
    for (PublishItem item : items) {
      writeSection(into, section, item);
      section += PublishRequest.sectionBytes(item.pages().length, hashBytes);
      blocks += item.pages().length;
    }
    PublishRequest.writeHeader(
        into, at, registrationId, registrationGeneration, items.size(), hashBytes, blocks);
  }

  private void writeSection(MemorySegment into, long section, PublishItem item) {
    int count = item.pages().length;
    byte[] parent = item.parent();
    PublishRequest.writeSection(
        into, section, item.group(), parent != null, item.position(), count);
    if (parent != null) {
      MemorySegment.copy(
          parent, 0, into, ValueLayout.JAVA_BYTE, PublishRequest.parentAt(section), hashBytes);
    }
    MemorySegment hashes = item.hashes().bytes();
    MemorySegment.copy(
        hashes, 0, into, PublishRequest.hashAt(section, 0, hashBytes), hashes.byteSize());
    for (int i = 0; i < count; i++) {
      Memory.putInt(into, PublishRequest.pageAt(section, i, count, hashBytes), item.pages()[i]);
    }
  }
}
