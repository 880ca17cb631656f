package io.orbitkv.client;

import io.orbitkv.channel.Memory;
import io.orbitkv.channel.RestoreRequest;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Data of a RESTORE command. */
record RestoreSpan(int registrationId, int registrationGeneration, List<RestoreItem> items)
    implements SpanWriter {
  /** Bytes, which may exceed the largest span. */
  long byteSize() {
    long bytes = RestoreRequest.headerBytes();
    for (RestoreItem item : items) {
      bytes += RestoreRequest.sectionBytes(item.pages().length);
    }
    return bytes;
  }

  @Override
  public int spanBytes() {
    return Math.toIntExact(byteSize());
  }

  @Override
  public void writeTo(MemorySegment into, long at) {
    int pages = 0;
    long section = at + RestoreRequest.headerBytes();
    for (RestoreItem item : items) {
      int count = item.pages().length;
      RestoreRequest.writeSection(into, section, item.lease().id(), item.skip(), count);
      for (int i = 0; i < count; i++) {
        Memory.putInt(into, RestoreRequest.pageAt(section, i), item.pages()[i]);
      }
      section += RestoreRequest.sectionBytes(count);
      pages += count;
    }
    RestoreRequest.writeHeader(
        into, at, registrationId, registrationGeneration, items.size(), pages);
  }
}
