package io.orbitkv.channel;

import io.orbitkv.channel.proto.GroupFields;
import io.orbitkv.channel.proto.StateFields;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashSet;
import java.util.Set;

/**
 * Checks the fields that make blocks interchangeable, and digests them to a namespace: SHA-256 over
 * the canonical form, in which each field is {@code number u16, type u8, length u32, bytes},
 * little-endian, in the order of numbers. No field is joined with another as text, so no two
 * different descriptors have the same form.
 */
public final class StateDescriptor {
  /** Longest text field, in bytes of UTF-8. */
  public static final int MAX_TEXT_BYTES = 4096;

  /** Names of page layouts; the meaning of a name is the engine adapter's, and it never changes. */
  public static final Set<String> LAYOUTS = Set.of("layer-page", "NHD", "HND", "MLA", "recurrent");

  private static final byte TEXT = 1;
  private static final byte NUMBER = 2;
  private static final byte NESTED = 3;

  private StateDescriptor() {}

  /**
   * Checks a descriptor.
   *
   * @throws ProtocolException naming the field, its value and the rule
   */
  public static void check(StateFields state) {
    text("model", state.getModel(), true);
    text("revision", state.getRevision(), false);
    text("weights_version", state.getWeightsVersion(), false);
    text("quantization", state.getQuantization(), false);
    text("compute_dtype", state.getComputeDtype(), true);
    text("kv_dtype", state.getKvDtype(), true);
    text("isa", state.getIsa(), false);
    text("adapter", state.getAdapter(), false);
    text("hash_scheme", state.getHashScheme(), true);
    text("hash_seed", state.getHashSeed(), false);
    text("engine", state.getEngine(), true);
    text("format_version", state.getFormatVersion(), false);
    text("scope", state.getScope(), false);
    if (!LAYOUTS.contains(state.getLayout())) {
      throw invalid(
          "layout=\"" + state.getLayout() + "\", allowed=" + new java.util.TreeSet<>(LAYOUTS));
    }
    number("block_tokens", state.getBlockTokens(), 1, 1 << 20);
    number("hash_bytes", state.getHashBytes(), Protocol.MIN_HASH_BYTES, Protocol.MAX_HASH_BYTES);
    rank("tp", state.getTpSize(), state.getTpRank());
    rank("pp", state.getPpSize(), state.getPpRank());
    rank("dcp", state.getDcpSize(), state.getDcpRank());
    checkGroups(state);
  }

  private static void checkGroups(StateFields state) {
    number("groups", state.getGroupsCount(), 1, Protocol.MAX_GROUPS);
    Set<Integer> ids = new HashSet<>();
    for (GroupFields group : state.getGroupsList()) {
      number("group id", group.getId(), 0, Protocol.MAX_GROUPS - 1L);
      GroupKind kind = GroupKind.of(group.getKind());
      if (!ids.add(group.getId())) {
        throw invalid("group id=" + group.getId() + " appears twice");
      }
      number("layers of group " + group.getId(), group.getLayers(), 1, 4096);
      number("block_bytes of group " + group.getId(), group.getBlockBytes(), 1, Integer.MAX_VALUE);
      if ((kind == GroupKind.WINDOW) != (group.getWindowTokens() > 0)) {
        throw invalid(
            "window_tokens="
                + group.getWindowTokens()
                + " of group "
                + group.getId()
                + ", kind="
                + group.getKind());
      }
    }
  }

  /** Digests a descriptor that {@link #check} accepts to {@link Protocol#NAMESPACE_BYTES} bytes. */
  public static byte[] digest(StateFields state) {
    try {
      MessageDigest sha = MessageDigest.getInstance("SHA-256");
      field(sha, 1, state.getModel());
      field(sha, 2, state.getRevision());
      field(sha, 3, state.getWeightsVersion());
      field(sha, 4, state.getQuantization());
      field(sha, 5, state.getComputeDtype());
      field(sha, 6, state.getKvDtype());
      field(sha, 7, state.getLayout());
      field(sha, 8, state.getIsa());
      field(sha, 9, state.getBlockTokens());
      for (GroupFields group : state.getGroupsList()) {
        header(sha, 10, NESTED, 5);
        field(sha, 1, group.getId());
        field(sha, 2, group.getKind());
        field(sha, 3, group.getWindowTokens());
        field(sha, 4, group.getLayers());
        field(sha, 5, group.getBlockBytes());
      }
      ranks(sha, state);
      field(sha, 18, state.getAdapter());
      field(sha, 19, state.getHashScheme());
      field(sha, 20, state.getHashSeed());
      field(sha, 21, state.getHashBytes());
      field(sha, 22, state.getEngine());
      field(sha, 23, state.getFormatVersion());
      field(sha, 24, state.getScope());
      return sha.digest();
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every Java platform has SHA-256", e);
    }
  }

  private static void ranks(MessageDigest sha, StateFields state) {
    field(sha, 11, state.getTpSize());
    field(
        sha,
        12,
        state.getReplicated()
            ? 0
            : state.getTpRank()); // replicated state is the same on every rank
    field(sha, 13, state.getPpSize());
    field(sha, 14, state.getPpRank());
    field(sha, 15, state.getDcpSize());
    field(sha, 16, state.getDcpRank());
    field(sha, 17, state.getReplicated() ? 1 : 0);
  }

  private static void field(MessageDigest sha, int number, String value) {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    header(sha, number, TEXT, bytes.length);
    sha.update(bytes);
  }

  private static void field(MessageDigest sha, int number, long value) {
    header(sha, number, NUMBER, Long.BYTES);
    sha.update(ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(0, value));
  }

  private static void header(MessageDigest sha, int number, byte type, int length) {
    ByteBuffer header = ByteBuffer.allocate(7).order(ByteOrder.LITTLE_ENDIAN);
    sha.update(header.putShort((short) number).put(type).putInt(length).flip());
  }

  private static void text(String field, String value, boolean required) {
    if (required && value.isEmpty()) {
      throw invalid(field + " is empty, it must be stated");
    }
    int bytes = value.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > MAX_TEXT_BYTES) {
      throw new ProtocolException(
          Status.LIMIT,
          "descriptor: bytes of " + field + "=" + bytes + ", limit=" + MAX_TEXT_BYTES);
    }
  }

  private static void rank(String name, int size, int rank) {
    number(name + "_size", size, 1, 65_536);
    number(name + "_rank", rank, 0, size - 1L);
  }

  private static void number(String field, long value, long low, long high) {
    Wire.require("descriptor: " + field, value, low, high);
  }

  private static ProtocolException invalid(String what) {
    return new ProtocolException(Status.INVALID, "descriptor: " + what);
  }
}
