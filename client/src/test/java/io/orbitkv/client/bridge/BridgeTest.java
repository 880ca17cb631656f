package io.orbitkv.client.bridge;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.Protocol;
import io.orbitkv.channel.Status;
import io.orbitkv.client.Lease;
import io.orbitkv.client.LookupRequestSpec;
import io.orbitkv.client.LookupResult;
import io.orbitkv.client.ManagerUnavailableException;
import io.orbitkv.client.OrbitKvException;
import io.orbitkv.client.PublishItem;
import io.orbitkv.client.PublishResult;
import io.orbitkv.client.RegistrationSpec;
import io.orbitkv.client.RestoreItem;
import io.orbitkv.client.RestoreResult;
import io.orbitkv.client.SaveNotSubmittedException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BridgeTest {
  private static final int HASH_BYTES = 16;
  private static final int PAGES = 4;
  private static final int PAGE_BYTES = 64;
  private static final String STATE =
      """
      model: "m" compute_dtype: "bf16" kv_dtype: "bf16" layout: "layer-page" block_tokens: 16
      tp_size: 1 pp_size: 1 dcp_size: 1 hash_scheme: "h" hash_bytes: 16 engine: "e"
      groups { id: 0 kind: "prefix" layers: 1 block_bytes: 64 }
      """;

  @TempDir private Path folder;

  private static ByteBuffer buffer() {
    return ByteBuffer.allocateDirect(4096).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static ByteBuffer numbers(long... values) {
    ByteBuffer call = buffer();
    for (long value : values) {
      call.putLong(value);
    }
    return call;
  }

  private static CallBuffer call(long... values) {
    return new CallBuffer(numbers(values));
  }

  private static byte[] hash(int seed) {
    byte[] hash = new byte[HASH_BYTES];
    hash[0] = (byte) seed;
    return hash;
  }

  private static ByteBuffer memory(ByteBuffer pages, long layers) {
    long address = MemorySegment.ofBuffer(pages).address();
    return numbers(PAGES, layers, address, pages.capacity(), 0, PAGE_BYTES, 1, 0, PAGE_BYTES);
  }

  @Test
  void shouldReadALookup() {
    ByteBuffer call = numbers(7, 3, 900, 1, HASH_BYTES, 2);
    call.put(new byte[Protocol.NAMESPACE_BYTES]).put(hash(1)).put(hash(2));

    LookupRequestSpec spec = OperationCalls.lookup(new CallBuffer(call));

    assertThat(spec.queryId()).isEqualTo(7);
    assertThat(spec.revision()).isEqualTo(3);
    assertThat(spec.maxLeaseAgeMs()).isEqualTo(900);
    assertThat(spec.namespaces()).containsExactly(new byte[Protocol.NAMESPACE_BYTES]);
    assertThat(spec.hashes().size()).isEqualTo(2);
    assertThat(spec.hashes().get(1)).isEqualTo(hash(2));
  }

  @Test
  void shouldReadTheItemsOfARestore() {
    List<RestoreItem> items =
        OperationCalls.restoreItems(call(2, 5, 6, 1, 0, 3, 1, 2, 30, 31, 7, 6, 0, 0, 1, 0, 1, 32));

    assertThat(items).hasSize(2);
    assertThat(items.get(0).lease()).isEqualTo(new Lease(5, 6, 1, 0, 3));
    assertThat(items.get(0).skip()).isEqualTo(1);
    assertThat(items.get(0).pages()).containsExactly(30, 31);
    assertThat(items.get(1).pages()).containsExactly(32);
  }

  @Test
  void shouldReadTheItemsOfASave() {
    ByteBuffer call = numbers(2, 0, 4, HASH_BYTES, 1, 1).put(hash(8)).put(hash(9)).putLong(30);
    call.putLong(0).putLong(0).putLong(HASH_BYTES).putLong(1).putLong(0).put(hash(1)).putLong(31);

    List<PublishItem> items = OperationCalls.saveItems(new CallBuffer(call));

    assertThat(items).hasSize(2);
    assertThat(items.get(0).position()).isEqualTo(4);
    assertThat(items.get(0).parent()).isEqualTo(hash(8));
    assertThat(items.get(0).hashes().get(0)).isEqualTo(hash(9));
    assertThat(items.get(0).pages()).containsExactly(30);
    assertThat(items.get(1).parent()).isNull();
    assertThat(items.get(1).pages()).containsExactly(31);
  }

  @Test
  void shouldWriteAnswers() {
    ByteBuffer answer = buffer();
    BitSet failed = new BitSet();
    failed.set(3);
    OperationCalls.answer(
        new RestoreResult(Status.COPY_FAILED, "é", failed, 11), new CallBuffer(answer));
    assertThat(longs(answer, 4)).containsExactly(11, 1, 3, 2);
    byte[] text = new byte[2];
    answer.get(32, text);
    assertThat(new String(text, StandardCharsets.UTF_8)).isEqualTo("é");

    OperationCalls.answer(
        new PublishResult(
            Status.OK,
            "",
            1,
            1,
            0,
            List.of(PublishResult.Block.HELD, PublishResult.Block.STORED),
            12),
        new CallBuffer(answer));
    assertThat(longs(answer, 8)).containsExactly(12, 1, 1, 0, 2, 1, 0, 0);

    int outcome =
        OperationCalls.answer(
            new LookupResult(
                LookupResult.Outcome.READY, List.of(), List.of(new Lease(1, 2, 0, 0, 4)), Map.of()),
            new CallBuffer(answer));
    assertThat(outcome).isZero();
    assertThat(longs(answer, 8)).containsExactly(0, 0, 1, 1, 2, 0, 0, 4);
  }

  private static long[] longs(ByteBuffer answer, int count) {
    long[] values = new long[count];
    for (int i = 0; i < count; i++) {
      values[i] = answer.getLong(i * Long.BYTES);
    }
    return values;
  }

  @Test
  void shouldCutAMessageWhereTheBufferEnds() {
    ByteBuffer answer = ByteBuffer.allocateDirect(12).order(ByteOrder.LITTLE_ENDIAN);
    new CallBuffer(answer).put("longer than this");
    assertThat(answer.getLong(0)).isEqualTo(4);
  }

  @Test
  void shouldNameTheNumberThatBreaksARule() {
    assertThatThrownBy(() -> OperationCalls.restoreItems(call(1, 5, 6, 0, 0, 3, 0, 1, 1L << 31)))
        .isInstanceOf(OrbitKvException.class)
        .hasMessage("page=2147483648, allowed=0..2147483647");
    assertThatThrownBy(() -> OperationCalls.restoreItems(call(1, 5, 6, 0, 0, 3, 0, 1_000_000)))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageStartingWith("pages=1000000, allowed=0..");
    assertThatThrownBy(() -> OperationCalls.saveItems(call(1, 0, 0, 99)))
        .isInstanceOf(OrbitKvException.class)
        .hasMessage("hash bytes=99, allowed=16..32");
    assertThatThrownBy(() -> new CallBuffer(ByteBuffer.allocateDirect(7)).number())
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("bytes=7 are too few");
  }

  @Test
  void shouldNameAFieldThatTheStateDoesNotHave() {
    assertThatThrownBy(() -> MemoryCall.state("modell: \"m\""))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("modell");
    assertThatThrownBy(() -> MemoryCall.state(STATE.replace("layer-page", "XYZ")))
        .isInstanceOf(OrbitKvException.class)
        .hasMessageContaining("layout=\"XYZ\"");
  }

  @Test
  void shouldRefuseMemoryThatIsNotWhatTheStateSays() {
    ByteBuffer pages = ByteBuffer.allocateDirect(PAGES * PAGE_BYTES);
    String other = STATE.replace("block_bytes: 64", "block_bytes: 128");

    RegistrationSpec spec =
        MemoryCall.read(MemoryCall.state(STATE), new CallBuffer(memory(pages, 1)), true);
    assertThat(spec.groups().getFirst().blockBytes()).isEqualTo(PAGE_BYTES);
    assertThat(spec.restoreOnly()).isTrue();
    assertThatThrownBy(
            () -> MemoryCall.read(MemoryCall.state(other), new CallBuffer(memory(pages, 1)), false))
        .isInstanceOf(OrbitKvException.class)
        .hasMessage(
            "group=0: the memory has layers=1, block bytes=64; the state says layers=1,"
                + " block bytes=128");
  }

  @Test
  void shouldWorkWithoutAManagerAndGiveEveryHandleBack() {
    int before = Bridge.openHandles();
    String socket = folder.resolve("none.sock").toString();
    assertThat(Bridge.socket(socket)).isEqualTo(socket);
    long client = Bridge.open(socket, "instance", "test", 1000, 0, 1, 0);
    ByteBuffer answer = buffer();
    ByteBuffer pages = ByteBuffer.allocateDirect(PAGES * PAGE_BYTES);
    long registration = Bridge.register(client, STATE, memory(pages, 1), 0);
    long fence = Bridge.fence();

    assertThat(Bridge.connection(client, answer)).isZero();
    assertThat(Bridge.publishActivity(client, answer)).isZero();
    assertThat(longs(answer, 4)).containsOnly(0);
    assertThat(Bridge.epoch(client)).isZero();
    assertThat(Bridge.isRegistered(registration)).isZero();
    assertThat(Bridge.generation(registration)).isZero();
    assertThat(Bridge.release(client, 1, 1)).isZero();
    assertThat(lookup(client, answer)).isEqualTo(4);
    assertThatThrownBy(() -> Bridge.status(client)).isInstanceOf(ManagerUnavailableException.class);
    assertThatThrownBy(() -> Bridge.health(client)).isInstanceOf(ManagerUnavailableException.class);
    assertThatThrownBy(() ->
            Bridge.save(
                registration, numbers(1, 0, 0, HASH_BYTES, 1, 0).put(hash(1)).putLong(0), fence))
        .isInstanceOf(SaveNotSubmittedException.class);
    assertThatThrownBy(
            () -> Bridge.restore(registration, numbers(1, 1, 1, 0, 0, 1, 0, 1, 0), fence))
        .isInstanceOf(ManagerUnavailableException.class);

    Bridge.signal(fence);
    Bridge.dropFence(fence);
    Bridge.unregister(registration);
    Bridge.dropRegistration(registration);
    Bridge.close(client);
    Bridge.dropClient(client);
    assertThat(Bridge.openHandles()).isEqualTo(before);
    assertThatThrownBy(() -> Bridge.close(client))
        .isInstanceOf(OrbitKvException.class)
        .hasMessage("client=" + client + " is not open");
  }

  private static int lookup(long client, ByteBuffer answer) {
    ByteBuffer call = numbers(0, 0, 0, 1, HASH_BYTES, 1);
    call.put(new byte[Protocol.NAMESPACE_BYTES]).put(hash(1));
    return Bridge.lookup(client, call, answer);
  }

  @Test
  void shouldDigestAState() {
    ByteBuffer first = buffer();
    ByteBuffer second = buffer();
    Bridge.namespace(STATE, first);
    Bridge.namespace(STATE.replace("bf16", "fp16"), second);
    assertThat(first.get(0) == second.get(0) && first.getLong(8) == second.getLong(8)).isFalse();
    assertThat(Bridge.statusName(9)).isEqualTo("LIMIT");
    assertThat(Bridge.missName(2)).isEqualTo("EVICTED");
  }
}
