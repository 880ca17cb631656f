package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Descriptors.FieldDescriptor;
import io.orbitkv.channel.proto.ClientFrame;
import io.orbitkv.channel.proto.ManagerFrame;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Compares each table of docs/protocol.md with the code. */
class ProtocolPageTest {
  private static final MarkdownTables PAGE =
      MarkdownTables.read(Path.of(System.getProperty("basedir", "."), "..", "docs", "protocol.md"));
  private static final int ONES = -1;

  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    arena.close();
  }

  private static long number(Map<String, String> row, String column) {
    return Long.parseLong(row.get(column));
  }

  private static List<String> pairs(String heading, String key, String value) {
    return PAGE.table(heading).stream().map(row -> row.get(key) + " " + row.get(value)).toList();
  }

  private FieldProbe probe(long bytes) {
    return new FieldProbe(arena, bytes, 0, bytes);
  }

  /** Every field of the table is where the code has it, and no field of the code is missing. */
  private static void assertFields(String heading, FieldProbe probe, long end) {
    Map<String, FieldProbe.Span> named = new LinkedHashMap<>();
    long last = 0;
    for (Map<String, String> row : PAGE.table(heading)) {
      long offset = number(row, "offset");
      assertThat(offset).as("%s: %s follows", heading, row).isGreaterThanOrEqualTo(last);
      last = offset + number(row, "bytes");
      if (!row.get("field").equals("zero")) {
        named.put(row.get("field"), new FieldProbe.Span(offset, number(row, "bytes")));
      }
    }
    assertThat(named).as(heading).isEqualTo(probe.fields());
    assertThat(last).as("end of %s", heading).isEqualTo(end);
  }

  @Test
  void shouldShowFrameHeader() {
    FieldProbe probe =
        probe(FrameHeader.BYTES)
            .startWith(new FrameHeader(Protocol.LIFECYCLE_VERSION, 0, 0)::writeTo);
    for (String field : List.of("magic", "version")) {
      probe.reads(field, bytes -> refusal(bytes, FrameHeader::readFrom).contains(field + "="));
    }
    probe.differs(
        "epoch",
        new FrameHeader(Protocol.LIFECYCLE_VERSION, 0, 0)::writeTo,
        new FrameHeader(Protocol.LIFECYCLE_VERSION, ONES, 0)::writeTo);
    probe.differs(
        "length",
        new FrameHeader(Protocol.LIFECYCLE_VERSION, 0, 0)::writeTo,
        new FrameHeader(Protocol.LIFECYCLE_VERSION, 0, ONES)::writeTo);
    assertFields("Frame header", probe, FrameHeader.BYTES);
  }

  private static String refusal(MemorySegment bytes, Consumer<MemorySegment> check) {
    try {
      check.accept(bytes);
      return "";
    } catch (ProtocolException e) {
      return e.getMessage();
    }
  }

  private static List<String> frames(List<FieldDescriptor> fields) {
    return fields.stream().map(field -> field.getNumber() + " " + field.getName()).toList();
  }

  @Test
  void shouldShowFrames() {
    assertThat(pairs("Client frames", "number", "frame"))
        .isEqualTo(frames(ClientFrame.getDescriptor().getFields()));
    assertThat(pairs("Manager frames", "number", "frame"))
        .isEqualTo(frames(ManagerFrame.getDescriptor().getFields()));
  }

  private static List<List<Long>> parts(String heading) {
    return PAGE.table(heading).stream()
        .map(row -> List.of(number(row, "offset"), number(row, "bytes")))
        .toList();
  }

  @Test
  void shouldShowPartsOfRegions() {
    List<List<Long>> channel = new ArrayList<>();
    channel.add(List.of(0L, ChannelDescriptor.RINGS_OFFSET));
    for (int ring = 0; ring < ChannelDescriptor.RINGS; ring++) {
      channel.add(List.of(ChannelDescriptor.ringOffset(ring), ChannelDescriptor.RING_BYTES));
    }
    for (int ring = 0; ring < ChannelDescriptor.RINGS; ring++) {
      channel.add(
          List.of(
              ChannelDescriptor.byteRingOffset(ring), (long) ChannelDescriptor.BYTE_RING_BYTES));
    }
    assertThat(parts("Channel region")).isEqualTo(channel);
    List<Long> lastRing = channel.getLast();
    assertThat(lastRing.get(0) + lastRing.get(1)).isEqualTo(ChannelDescriptor.REGION_BYTES);

    long records = (long) GrantTable.RECORDS * GrantTable.RECORD_BYTES;
    assertThat(parts("Grant region"))
        .containsExactly(
            List.of(0L, GrantTable.TABLE_OFFSET),
            List.of(GrantTable.TABLE_OFFSET, records),
            List.of(GrantTable.BANK_OFFSET, (long) GrantTable.BANK_BYTES));
    assertThat(GrantTable.BANK_OFFSET + GrantTable.BANK_BYTES).isEqualTo(GrantTable.REGION_BYTES);
  }

  private static void put(MemorySegment region, long offset) {
    Memory.putInt(region, offset, ONES);
  }

  @Test
  void shouldShowChannelHeader() {
    FieldProbe probe =
        new FieldProbe(arena, ChannelDescriptor.REGION_BYTES, 0, ChannelDescriptor.RINGS_OFFSET)
            .startWith(region -> ChannelDescriptor.format(region, 0, 0, 0));
    for (String field :
        List.of("magic", "version", "ringCapacity", "byteRingBytes", "totalBytes")) {
      probe.reads(field, region -> refusal(region, ChannelDescriptor::check).contains(field + "="));
    }
    probe
        .writes("epochHigh", region -> ChannelDescriptor.format(region, ONES, 0, 0))
        .writes("epochLow", region -> ChannelDescriptor.format(region, 0, ONES, 0))
        .writes("sessionSlot", region -> ChannelDescriptor.format(region, 0, 0, ONES))
        .reads(
            "sessionState", region -> Memory.getInt(region, ChannelDescriptor.SESSION_STATE_OFFSET))
        .writes("managerSleeps", region -> put(region, ChannelDescriptor.MANAGER_SLEEPS_OFFSET))
        .writes("restoreSleeps", region -> put(region, ChannelDescriptor.RESTORE_SLEEPS_OFFSET))
        .writes("publishSleeps", region -> put(region, ChannelDescriptor.PUBLISH_SLEEPS_OFFSET));
    assertFields("Channel header", probe, ChannelDescriptor.PUBLISH_SLEEPS_OFFSET + 4);
  }

  @Test
  void shouldShowRing() {
    int ring = ChannelDescriptor.QUERY_REPLIES;
    List<Map<String, String>> rows = PAGE.table("Ring");
    assertThat(rows)
        .extracting(row -> row.get("field"))
        .containsExactly("tail", "head", "byteHead", "slots");
    assertThat(rows).filteredOn(row -> number(row, "bytes") == 8).hasSize(3);
    MemorySegment region = arena.allocate(ChannelDescriptor.REGION_BYTES, 4096);
    Command command = new Command().set(0x7777, 0, 0, 0, 0, 0);
    ByteRing.Producer bytes = new ByteRing.Producer(region, ring);
    bytes.tryClaim(1);
    bytes.commit(1, command);
    new CommandRing.Producer(region, ring).tryWrite(command);
    new CommandRing.Consumer(region, ring).tryRead(command);
    new ByteRing.Consumer(region, ring).take(command, arena.allocate(1));

    long base = ChannelDescriptor.ringOffset(ring);
    long[] found = new long[3];
    for (int i = 0; i < 3; i++) {
      found[i] = Memory.getLong(region, base + number(rows.get(i), "offset"));
    }
    assertThat(found).as("tail, head, byteHead").containsExactly(1, 1, 64);
    long slots = number(rows.get(3), "offset");
    assertThat(Memory.getShort(region, base + slots + Command.OPCODE_OFFSET))
        .isEqualTo((short) 0x7777);
    assertThat(slots + number(rows.get(3), "bytes")).isEqualTo(ChannelDescriptor.RING_BYTES);
  }

  @Test
  void shouldShowCommand() {
    List<String> fields = new ArrayList<>();
    for (MemoryLayout member : Command.LAYOUT.memberLayouts()) {
      String name = member.name().orElseThrow();
      long offset = Command.LAYOUT.byteOffset(MemoryLayout.PathElement.groupElement(name));
      fields.add(offset + " " + member.byteSize() + " " + name);
    }
    assertThat(PAGE.table("Command"))
        .extracting(row -> row.get("offset") + " " + row.get("bytes") + " " + row.get("field"))
        .isEqualTo(fields);
  }

  /** Writes a second span at the start of a byte ring, after one that was taken. */
  private static void writeSpans(MemorySegment region, int length) {
    Command command = new Command();
    ByteRing.Producer producer = new ByteRing.Producer(region, 0);
    ByteRing.Consumer consumer = new ByteRing.Consumer(region, 0);
    for (int i = 0; i < 2; i++) {
      producer.tryClaim(length);
      producer.commit(length, command);
      consumer.take(command, MemorySegment.ofArray(new byte[length]));
    }
  }

  @Test
  void shouldShowSpan() {
    List<Map<String, String>> rows = PAGE.table("Span");
    assertThat(rows)
        .extracting(row -> row.get("field") + " " + row.get("bytes"))
        .containsExactly("generation 8", "length 4", "zero 4");
    MemorySegment region = arena.allocate(ChannelDescriptor.REGION_BYTES, 4096);
    writeSpans(region, 77);
    long base = ChannelDescriptor.byteRingOffset(0);

    assertThat(Memory.getLong(region, base + number(rows.get(0), "offset")))
        .isEqualTo(ChannelDescriptor.BYTE_RING_BYTES);
    assertThat(Memory.getInt(region, base + number(rows.get(1), "offset"))).isEqualTo(77);
    assertThat(Memory.getInt(region, base + number(rows.get(2), "offset"))).isZero();
    long header = number(rows.get(2), "offset") + number(rows.get(2), "bytes");
    assertThat(new ByteRing.Producer(region, 0).tryClaim(1)).isEqualTo(base + header);
  }

  @Test
  void shouldShowCodes() throws IllegalAccessException {
    List<String> opcodes = new ArrayList<>();
    for (Field field : Opcode.class.getFields()) {
      opcodes.add(field.getShort(null) + " " + field.getName());
    }
    assertThat(pairs("Opcodes", "code", "opcode")).isEqualTo(opcodes);
    assertThat(pairs("Status codes", "code", "status"))
        .isEqualTo(Arrays.stream(Status.values()).map(s -> s.code() + " " + s).toList());
    assertThat(pairs("Miss reasons", "code", "reason"))
        .isEqualTo(Arrays.stream(MissReason.values()).map(r -> r.code() + " " + r).toList());
  }

  @Test
  void shouldShowLookupRequest() {
    FieldProbe probe =
        probe(LookupRequest.HEADER_BYTES)
            .writes("mode", b -> LookupRequest.writeHeader(b, 0, ONES, 0, 0, 0, 0, 0, 0, 0))
            .writes("hashBytes", b -> LookupRequest.writeHeader(b, 0, 0, ONES, 0, 0, 0, 0, 0, 0))
            .writes("namespaces", b -> LookupRequest.writeHeader(b, 0, 0, 0, ONES, 0, 0, 0, 0, 0))
            .writes("hashes", b -> LookupRequest.writeHeader(b, 0, 0, 0, 0, ONES, 0, 0, 0, 0))
            .writes("queryId", b -> LookupRequest.writeHeader(b, 0, 0, 0, 0, 0, ONES, 0, 0, 0))
            .writes("revision", b -> LookupRequest.writeHeader(b, 0, 0, 0, 0, 0, 0, ONES, 0, 0))
            .writes(
                "maxLeaseAgeMs", b -> LookupRequest.writeHeader(b, 0, 0, 0, 0, 0, 0, 0, ONES, 0))
            .writes("groupMask", b -> LookupRequest.writeHeader(b, 0, 0, 0, 0, 0, 0, 0, 0, ONES));
    assertFields("Lookup request", probe, LookupRequest.namespaceAt(0));
  }

  @Test
  void shouldShowLookupReply() {
    FieldProbe header =
        probe(LookupReply.byteSize(0, 0, 0))
            .reads("outcome", b -> LookupReply.outcome(b, 0))
            .reads("groups", b -> LookupReply.groups(b, 0))
            .reads("hashes", b -> LookupReply.hashes(b, 0))
            .reads("leases", b -> LookupReply.leases(b, 0))
            .reads("leaseAgeMs", b -> LookupReply.leaseAgeMs(b, 0))
            .writes(
                "misses",
                b -> {
                  for (int reason = 0; reason < 8; reason++) {
                    LookupReply.putMisses(b, 0, reason, ONES);
                  }
                });
    assertFields("Lookup reply", header, LookupReply.byteSize(0, 0, 0));
    FieldProbe group =
        probe(LookupReply.byteSize(1, 0, 0) - LookupReply.byteSize(0, 0, 0))
            .reads("group", b -> LookupReply.group(b, 0))
            .reads("firstMiss", b -> LookupReply.firstMiss(b, 0))
            .reads("present", b -> LookupReply.present(b, 0))
            .reads("prefix", b -> LookupReply.prefix(b, 0));
    assertFields("Group of a lookup reply", group, 16);
    FieldProbe lease =
        probe(LookupReply.byteSize(0, 0, 1) - LookupReply.byteSize(0, 0, 0))
            .reads("leaseId", b -> LookupReply.leaseId(b, 0))
            .reads("blocks", b -> LookupReply.leaseBlocks(b, 0))
            .reads("namespace", b -> LookupReply.leaseNamespace(b, 0))
            .reads("group", b -> LookupReply.leaseGroup(b, 0));
    assertFields("Lease of a lookup reply", lease, 16);
  }

  @Test
  void shouldShowRestoreRequest() {
    FieldProbe header =
        probe(RestoreRequest.headerBytes())
            .writes("registrationId", b -> RestoreRequest.writeHeader(b, 0, ONES, 0, 0, 0))
            .writes("registrationGeneration", b -> RestoreRequest.writeHeader(b, 0, 0, ONES, 0, 0))
            .writes("leases", b -> RestoreRequest.writeHeader(b, 0, 0, 0, ONES, 0))
            .writes("pages", b -> RestoreRequest.writeHeader(b, 0, 0, 0, 0, ONES));
    assertFields("Restore request", header, RestoreRequest.headerBytes());
    FieldProbe section =
        probe(RestoreRequest.sectionBytes(0))
            .writes("leaseId", b -> RestoreRequest.writeSection(b, 0, ONES, 0, 0))
            .writes("skip", b -> RestoreRequest.writeSection(b, 0, 0, ONES, 0))
            .writes("count", b -> RestoreRequest.writeSection(b, 0, 0, 0, ONES));
    assertFields("Section of a restore request", section, RestoreRequest.pageAt(0, 0));
  }

  @Test
  void shouldShowPublishRequest() {
    FieldProbe header =
        probe(PublishRequest.headerBytes())
            .writes("registrationId", b -> PublishRequest.writeHeader(b, 0, ONES, 0, 0, 0, 0))
            .writes(
                "registrationGeneration", b -> PublishRequest.writeHeader(b, 0, 0, ONES, 0, 0, 0))
            .writes("sections", b -> PublishRequest.writeHeader(b, 0, 0, 0, ONES, 0, 0))
            .writes("hashBytes", b -> PublishRequest.writeHeader(b, 0, 0, 0, 0, ONES, 0))
            .writes("blocks", b -> PublishRequest.writeHeader(b, 0, 0, 0, 0, 0, ONES));
    assertFields("Publish request", header, PublishRequest.headerBytes());
    MemorySegment hash = arena.allocate(Protocol.MAX_HASH_BYTES).fill((byte) ONES);
    FieldProbe section =
        probe(PublishRequest.sectionBytes(0, 32))
            .writes("group", b -> PublishRequest.writeSection(b, 0, ONES, false, 0, 0))
            .reads("hasParent", ProtocolPageTest::hasParent)
            .writes("position", b -> PublishRequest.writeSection(b, 0, 0, false, ONES, 0))
            .writes("count", b -> PublishRequest.writeSection(b, 0, 0, false, 0, ONES))
            .writes(
                "parent",
                b -> MemorySegment.copy(hash, 0, b, PublishRequest.parentAt(0), hash.byteSize()));
    assertFields("Section of a publish request", section, PublishRequest.hashAt(0, 0, 32));
  }

  private static boolean hasParent(MemorySegment section) {
    int count = 1;
    int bytes = (int) (PublishRequest.headerBytes() + PublishRequest.sectionBytes(count, 16));
    MemorySegment request = Arena.ofAuto().allocate(bytes, 8);
    PublishRequest.writeHeader(request, 0, 0, 0, 1, 16, count);
    PublishRequest.writeSection(request, 16, 0, false, 0, count);
    PublishRequest view = new PublishRequest().wrap(request, 0, bytes);
    view.nextSection();
    MemorySegment.copy(section, 2, request, 18, 2);
    return view.hasParent();
  }

  @Test
  void shouldShowPublishReply() {
    FieldProbe probe =
        probe(PublishReply.byteSize(0)).reads("blocks", b -> PublishReply.blocks(b, 0));
    assertFields("Publish reply", probe, PublishReply.byteSize(0));
  }

  @Test
  void shouldShowGrantHeader() {
    FieldProbe probe =
        new FieldProbe(arena, GrantTable.REGION_BYTES, 0, GrantTable.TABLE_OFFSET)
            .startWith(GrantTable::format);
    probe
        .writes("magic", region -> Memory.putLong(region, 0, ~GrantTable.MAGIC))
        .reads("version", region -> refusal(region, GrantTable::open).contains("wanted="))
        .reads("records", region -> Memory.getInt(region, GrantTable.RECORDS_OFFSET))
        .reads("bankBytes", region -> Memory.getInt(region, GrantTable.BANK_BYTES_OFFSET))
        .reads("drains", region -> GrantTable.format(region).drainsAcquire())
        .reads("dirty", ProtocolPageTest::dirtyWords);
    assertFields("Grant header", probe, GrantTable.DIRTY_OFFSET + 8L * GrantTable.DIRTY_WORDS);
  }

  private static List<Long> dirtyWords(MemorySegment region) {
    GrantTable table = GrantTable.format(region);
    List<Long> words = new ArrayList<>();
    for (int word = 0; word < GrantTable.DIRTY_WORDS; word++) {
      words.add(table.takeDirty(word));
    }
    return words;
  }

  private static FieldProbe reads(
      FieldProbe probe, String field, Function<GrantTable, Object> reader) {
    return probe.reads(field, region -> reader.apply(GrantTable.open(region)));
  }

  @Test
  void shouldShowGrantRecord() {
    FieldProbe probe =
        new FieldProbe(
                arena, GrantTable.REGION_BYTES, GrantTable.TABLE_OFFSET, GrantTable.RECORD_BYTES)
            .startWith(GrantTable::format);
    reads(probe, "word", table -> table.wordAcquire(0));
    reads(probe, "kind", table -> table.kind(0));
    reads(probe, "status", table -> table.status(0));
    reads(probe, "planOffset", table -> table.planOffset(0));
    reads(probe, "planEntries", table -> table.planEntries(0));
    reads(probe, "stored", table -> table.stored(0));
    reads(probe, "held", table -> table.held(0));
    reads(probe, "refused", table -> table.refused(0));
    reads(probe, "errorBytes", table -> table.error(0));
    reads(probe, "parts", table -> table.parts(0));
    probe.differs(
        "error",
        region ->
            GrantTable.open(region)
                .setOutcome(0, Status.OK, 0, 0, 0, "x".repeat(GrantTable.MAX_ERROR_BYTES)),
        region ->
            GrantTable.open(region)
                .setOutcome(0, Status.OK, 0, 0, 0, "y".repeat(GrantTable.MAX_ERROR_BYTES)));
    reads(probe, "engineStatus", table -> table.engineStatus(0));
    reads(probe, "entriesDone", table -> table.entriesDone(0));
    reads(probe, "copyNs", table -> table.copyNs(0));
    probe.writes(
        "bytesCopied", region -> GrantTable.open(region).setEngineResult(0, Status.OK, 0, 0, ONES));
    assertFields("Grant record", probe, GrantTable.BYTES_COPIED + 8);
  }

  @Test
  void shouldShowGrantWord() {
    Map<String, Function<Long, Object>> readers =
        Map.of(
            "state",
            word -> String.valueOf(GrantWord.state(word)),
            "part",
            GrantWord::part,
            "generation",
            GrantWord::generation);
    List<Map<String, String>> rows = PAGE.table("Grant word");
    assertThat(rows).hasSize(readers.size());
    for (Map<String, String> row : rows) {
      Function<Long, Object> reader = readers.get(row.get("field"));
      TreeSet<Integer> bits = new TreeSet<>();
      for (int bit = 0; bit < 64; bit++) {
        if (!reader.apply(1L << bit).equals(reader.apply(0L))) {
          bits.add(bit);
        }
      }
      assertThat(bits.first() + "-" + bits.last()).isEqualTo(row.get("bits"));
      assertThat(bits).hasSize(bits.last() - bits.first() + 1);
    }
    assertThat(GrantWord.operationId(5, 1)).isEqualTo(1 << 10 | 5);
  }

  @Test
  void shouldShowPlanEntry() {
    FieldProbe probe =
        probe(PlanEntry.BYTES)
            .reads("arena", b -> PlanEntry.arena(b, 0))
            .reads("group", b -> PlanEntry.group(b, 0))
            .reads("page", b -> PlanEntry.page(b, 0))
            .reads("allocation", b -> PlanEntry.allocation(b, 0))
            .reads("offset", b -> PlanEntry.offset(b, 0))
            .reads("length", b -> PlanEntry.length(b, 0))
            .reads("crc32c", b -> PlanEntry.crc(b, 0));
    assertFields("Plan entry", probe, PlanEntry.BYTES);
  }

  @Test
  void shouldShowStatesAndMoves() {
    List<String> codes = new ArrayList<>();
    List<String> moves = new ArrayList<>();
    for (GrantState from : GrantState.values()) {
      codes.add(from.code() + " " + from + " " + (from.pagesFree() ? "free" : "in use"));
      for (GrantState to : GrantState.values()) {
        if (from.engineMayMoveTo(to)) {
          moves.add(from + " engine " + to);
        }
        if (from.managerMayMoveTo(to)) {
          moves.add(from + " Manager " + to);
        }
      }
    }
    assertThat(PAGE.table("State codes"))
        .extracting(row -> row.get("code") + " " + row.get("state") + " " + row.get("pages"))
        .isEqualTo(codes);
    assertThat(PAGE.table("Moves"))
        .extracting(row -> row.get("from") + " " + row.get("by") + " " + row.get("to"))
        .containsExactlyInAnyOrderElementsOf(moves);
  }

  @Test
  void shouldShowLimits() {
    Map<String, Integer> limits = new LinkedHashMap<>();
    limits.put("channel version", Protocol.CHANNEL_VERSION);
    limits.put("lifecycle version", Protocol.LIFECYCLE_VERSION);
    limits.put("frame message, bytes", Protocol.MAX_FRAME_BYTES);
    limits.put("span, bytes", Protocol.MAX_SPAN_BYTES);
    limits.put("commands a ring", ChannelDescriptor.RING_CAPACITY);
    limits.put("hashes a command", Protocol.MAX_HASHES);
    limits.put("shortest hash, bytes", Protocol.MIN_HASH_BYTES);
    limits.put("longest hash, bytes", Protocol.MAX_HASH_BYTES);
    limits.put("namespaces a lookup", Protocol.MAX_NAMESPACES);
    limits.put("groups", Protocol.MAX_GROUPS);
    limits.put("sessions", Protocol.MAX_SESSIONS);
    limits.put("grant records a session", GrantTable.RECORDS);
    limits.put("plan bank, bytes", GrantTable.BANK_BYTES);
    limits.put("entries of one part of a plan", GrantTable.MAX_PLAN_ENTRIES);
    limits.put("error text, bytes", GrantTable.MAX_ERROR_BYTES);
    limits.put("text field of a descriptor, bytes", StateDescriptor.MAX_TEXT_BYTES);
    assertThat(pairs("Limits", "limit", "value"))
        .isEqualTo(limits.entrySet().stream().map(e -> e.getKey() + " " + e.getValue()).toList());
  }

  @Test
  void shouldHaveNoTableThatIsNotCompared() {
    assertThat(PAGE.headings())
        .containsExactlyInAnyOrder(
            "Frame header",
            "Client frames",
            "Manager frames",
            "Channel region",
            "Channel header",
            "Ring",
            "Command",
            "Span",
            "Opcodes",
            "Status codes",
            "Lookup request",
            "Lookup reply",
            "Group of a lookup reply",
            "Lease of a lookup reply",
            "Miss reasons",
            "Restore request",
            "Section of a restore request",
            "Publish request",
            "Section of a publish request",
            "Publish reply",
            "Grant region",
            "Grant header",
            "Grant record",
            "Grant word",
            "Plan entry",
            "State codes",
            "Moves",
            "Limits");
  }
}
