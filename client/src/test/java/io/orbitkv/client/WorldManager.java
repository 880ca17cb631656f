package io.orbitkv.client;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.Protocol;
import io.orbitkv.core.CacheCore;
import io.orbitkv.core.CoreConfig;
import io.orbitkv.core.CoreOutput;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.Set;
import java.util.zip.CRC32C;

/**
 * One Manager epoch of a {@link GrantWorld}: a real core, and its edge in as few lines as will do.
 */
final class WorldManager implements CoreOutput {
  static final int SLAB = 2 << 20;

  /** Most blocks of a part: one more makes an operation of two parts. */
  static final int PART_BLOCKS = 16;

  /** Ranges that the blocks of a world may have. */
  private static final int RANGES = 48;

  private static final long LEASE_AGE_NS = 1L << 50;

  final long epoch;
  final MemorySegment arena;
  final CacheCore core;
  final MemorySegment commandData;
  final Command lastReply = new Command();
  boolean dead;
  boolean stopping;
  private final WorldSession[] bySlot = new WorldSession[Protocol.MAX_SESSIONS];

  WorldManager(WorldMemory memory, long epoch, MemorySegment arena) {
    this.epoch = epoch;
    this.arena = arena;
    this.commandData = memory.take(1 << 20);
    this.core =
        new CacheCore(
            new CoreConfig(
                new long[] {SLAB}, SLAB, SLAB, SLAB, LEASE_AGE_NS, PART_BLOCKS, memory::take),
            epoch,
            this);
  }

  void add(WorldSession session) {
    bySlot[session.slot] = session;
  }

  @Override
  public void reply(int slot, int ring, Command reply) {
    lastReply.set(reply.opcode, reply.status, reply.requestId, reply.epoch, 0, 0);
    lastReply.data(reply.dataOffset, reply.dataLength, reply.generation);
    bySlot[slot].replies[ring].tryWrite(reply);
  }

  @Override
  public ByteRing.Producer replyBytes(int slot, int ring) {
    return bySlot[slot].replyBytes[ring];
  }

  @Override
  public void wakeRestore(int slot) {}

  @Override
  public void wakePublish(int slot) {}

  @Override
  public void sessionSettled(int slot) {
    bySlot[slot].settled = true;
  }

  @Override
  public void unregistered(int slot, int id) {
    bySlot[slot].withdrawn = true;
  }

  @Override
  public void violation(int slot, String what) {
    bySlot[slot].violated = true;
    bySlot[slot].lossSeen = true;
  }

  private Object store() {
    return StateHash.field(core, "store");
  }

  private Object ofRow(String name, int row) {
    return StateHash.call(store(), name, row);
  }

  int pins(int row) {
    return (int) ofRow("pins", row);
  }

  void unpin(int row) {
    ofRow("unpin", row);
  }

  long allocation(int row) {
    return (long) ofRow("allocation", row);
  }

  private boolean isVisible(int row) {
    return (boolean) ofRow("isResident", row)
        && !(boolean) StateHash.call(ofRow("spaceOf", row), "isCleared");
  }

  /**
   * First byte of each block that a lookup can find.
   *
   * @throws AssertionError when a block is not of one piece, is there twice, or has another sum
   */
  Set<Byte> visible() {
    Set<Byte> found = new HashSet<>();
    int end = (int) StateHash.call(store(), "rowEnd");
    for (int row = 0; row < end; row++) {
      if (isVisible(row)) {
        long at = (long) ofRow("offset", row);
        MemorySegment block = arena.asSlice(at, WorldProcess.BLOCK_BYTES);
        byte first = block.get(ValueLayout.JAVA_BYTE, 0);
        requireWhole(block, first, (int) ofRow("crc", row));
        GrantWorld.require(found.add(first), "two visible blocks for one key");
      }
    }
    return found;
  }

  /** Adds what the first ranges of the arena hold. */
  void addBytes(StateHash hash) {
    for (int i = 0; i < RANGES; i++) {
      hash.add(arena.get(ValueLayout.JAVA_BYTE, (long) i * WorldProcess.BLOCK_BYTES));
    }
  }

  private static void requireWhole(MemorySegment block, byte first, int sum) {
    byte[] bytes = block.toArray(ValueLayout.JAVA_BYTE);
    for (byte each : bytes) {
      GrantWorld.require(each == first, "a visible block is of two publishes");
    }
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    GrantWorld.require((int) crc.getValue() == sum, "a visible block has another checksum");
  }
}
