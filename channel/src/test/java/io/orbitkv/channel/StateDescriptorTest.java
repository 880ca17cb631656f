package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.orbitkv.channel.proto.GroupFields;
import io.orbitkv.channel.proto.StateFields;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StateDescriptorTest {
  private static final StateFields STATE =
      StateFields.newBuilder()
          .setModel("acme/llm-8b")
          .setRevision("r1")
          .setWeightsVersion("w2")
          .setQuantization("fp8")
          .setComputeDtype("bf16")
          .setKvDtype("fp8_e4m3")
          .setLayout("NHD")
          .setIsa("avx2")
          .setBlockTokens(16)
          .addGroups(group(0, "prefix", 0, 24, 1_572_864))
          .addGroups(group(1, "window", 4096, 8, 524_288))
          .setTpSize(4)
          .setTpRank(2)
          .setPpSize(2)
          .setPpRank(1)
          .setDcpSize(3)
          .setDcpRank(1)
          .setAdapter("lora-a")
          .setHashScheme("sha256-chain")
          .setHashSeed("seed-0")
          .setHashBytes(32)
          .setEngine("vllm")
          .setFormatVersion("1")
          .setScope("team-ü")
          .build();

  private static GroupFields group(int id, String kind, int window, int layers, long bytes) {
    return GroupFields.newBuilder()
        .setId(id)
        .setKind(kind)
        .setWindowTokens(window)
        .setLayers(layers)
        .setBlockBytes(bytes)
        .build();
  }

  private static String digest(StateFields state) {
    return HexFormat.of().formatHex(StateDescriptor.digest(state));
  }

  @Test
  void shouldKeepDigest() {
    StateDescriptor.check(STATE);

    assertThat(digest(STATE))
        .isEqualTo(HexFormat.of().formatHex(Golden.bytes("state-digest.hex", 32)));
  }

  /** Another value of a field. */
  private static Object changed(FieldDescriptor field, Object value) {
    return switch (field.getJavaType()) {
      case STRING -> value + "x";
      case INT -> (int) value + 1;
      case LONG -> (long) value + 1;
      case BOOLEAN -> !(boolean) value;
      default -> throw new AssertionError("field of unknown type: " + field);
    };
  }

  @Test
  void shouldDigestEveryField() {
    Map<String, String> digests = new HashMap<>();
    digests.put(digest(STATE), "unchanged");
    for (FieldDescriptor field : StateFields.getDescriptor().getFields()) {
      if (!field.isRepeated()) {
        StateFields other =
            STATE.toBuilder().setField(field, changed(field, STATE.getField(field))).build();
        assertThat(digests.put(digest(other), field.getName())).as(field.getName()).isNull();
      }
    }
    for (int i = 0; i < STATE.getGroupsCount(); i++) {
      Message group = STATE.getGroups(i);
      for (FieldDescriptor field : GroupFields.getDescriptor().getFields()) {
        Object value = changed(field, group.getField(field));
        GroupFields other = STATE.getGroups(i).toBuilder().setField(field, value).build();
        assertThat(digests.put(digest(STATE.toBuilder().setGroups(i, other).build()), "group"))
            .as("%s of group %d", field.getName(), i)
            .isNull();
      }
    }
    digests.put(digest(STATE.toBuilder().removeGroups(1).build()), "one group");
    assertThat(digests).hasSize(1 + 23 + 2 * 5 + 1);
  }

  @Test
  void shouldTellTextOfOneFieldFromThatOfTheNext() {
    StateFields other = STATE.toBuilder().setModel("acme/llm-8br1").setRevision("").build();

    assertThat(digest(other)).isNotEqualTo(digest(STATE));
  }

  @Test
  void shouldShareReplicatedStateBetweenRanks() {
    StateFields replicated = STATE.toBuilder().setReplicated(true).build();

    assertThat(digest(replicated.toBuilder().setTpRank(0).build()))
        .isEqualTo(digest(replicated.toBuilder().setTpRank(3).build()));
    assertThat(digest(replicated)).isNotEqualTo(digest(STATE));
    assertThat(digest(replicated.toBuilder().setPpRank(0).build()))
        .as("stages hold different layers")
        .isNotEqualTo(digest(replicated));
  }

  private static void assertRefused(StateFields.Builder state, Status status, String text) {
    ProtocolException refusal =
        catchThrowableOfType(ProtocolException.class, () -> StateDescriptor.check(state.build()));
    assertThat(refusal).as(text).isNotNull().hasMessageContaining(text);
    assertThat(refusal.status()).isEqualTo(status);
  }

  private static StateFields.Builder state() {
    return STATE.toBuilder();
  }

  @Test
  void shouldRefuseMissingText() {
    assertRefused(state().clearModel(), Status.INVALID, "model is empty");
    assertRefused(state().clearComputeDtype(), Status.INVALID, "compute_dtype is empty");
    assertRefused(state().clearKvDtype(), Status.INVALID, "kv_dtype is empty");
    assertRefused(state().clearHashScheme(), Status.INVALID, "hash_scheme is empty");
    assertRefused(state().clearEngine(), Status.INVALID, "engine is empty");
    assertThatCode(() -> StateDescriptor.check(state().clearAdapter().clearScope().build()))
        .doesNotThrowAnyException();
  }

  @Test
  void shouldRefuseLongText() {
    for (FieldDescriptor field : StateFields.getDescriptor().getFields()) {
      if (field.getJavaType() == FieldDescriptor.JavaType.STRING
          && !field.getName().equals("layout")) {
        assertRefused(
            state().setField(field, "ü".repeat(2049)),
            Status.LIMIT,
            field.getName() + "=4098, limit=4096");
      }
    }
  }

  @Test
  void shouldNameUnknownLayout() {
    assertRefused(
        state().setLayout("nhd"),
        Status.INVALID,
        "layout=\"nhd\", allowed=[HND, MLA, NHD, layer-page, recurrent]");
  }

  @Test
  void shouldNameNumberAndItsLimits() {
    assertRefused(state().setBlockTokens(0), Status.INVALID, "block_tokens=0, allowed=1..1048576");
    assertRefused(state().setBlockTokens((1 << 20) + 1), Status.LIMIT, "block_tokens=1048577");
    assertRefused(state().setHashBytes(15), Status.INVALID, "hash_bytes=15, allowed=16..32");
    assertRefused(state().setHashBytes(33), Status.LIMIT, "hash_bytes=33");
    assertRefused(state().setTpSize(0), Status.INVALID, "tp_size=0");
    assertRefused(state().setTpSize(65_537), Status.LIMIT, "tp_size=65537");
    assertRefused(state().setTpRank(4), Status.LIMIT, "tp_rank=4, allowed=0..3");
    assertRefused(state().setPpRank(2), Status.LIMIT, "pp_rank=2, allowed=0..1");
    assertRefused(state().setDcpRank(-1), Status.INVALID, "dcp_rank=-1");
  }

  @Test
  void shouldNameWrongGroup() {
    assertRefused(state().clearGroups(), Status.INVALID, "groups=0, allowed=1..64");
    assertRefused(state().setGroups(1, group(64, "prefix", 0, 1, 1)), Status.LIMIT, "group id=64");
    assertRefused(
        state().setGroups(1, group(0, "prefix", 0, 1, 1)), Status.INVALID, "group id=0 appears");
    assertRefused(
        state().setGroups(1, group(1, "Prefix", 0, 1, 1)), Status.INVALID, "kind=\"Prefix\"");
    assertRefused(
        state().setGroups(1, group(1, "window", 0, 1, 1)), Status.INVALID, "window_tokens=0");
    assertRefused(
        state().setGroups(1, group(1, "prefix", 8, 1, 1)), Status.INVALID, "window_tokens=8");
    assertRefused(
        state().setGroups(1, group(1, "checkpoint", 0, 0, 1)),
        Status.INVALID,
        "layers of group 1=0, allowed=1..4096");
    assertRefused(state().setGroups(1, group(1, "checkpoint", 0, 4097, 1)), Status.LIMIT, "=4097");
    assertRefused(
        state().setGroups(1, group(1, "prefix", 0, 1, 0)),
        Status.INVALID,
        "block_bytes of group 1=0");
    assertRefused(
        state().setGroups(1, group(1, "prefix", 0, 1, 1L << 31)),
        Status.LIMIT,
        "block_bytes of group 1=2147483648");
  }
}
