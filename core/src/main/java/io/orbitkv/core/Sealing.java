package io.orbitkv.core;

import io.orbitkv.channel.ByteRing;
import io.orbitkv.channel.ChannelDescriptor;
import io.orbitkv.channel.Command;
import io.orbitkv.channel.GrantTable;
import io.orbitkv.channel.Opcode;
import io.orbitkv.channel.PlanEntry;
import io.orbitkv.channel.PublishReply;
import io.orbitkv.channel.Status;
import java.lang.foreign.MemorySegment;

/** The end of publishes: takes the sums that the engine left, seals blocks and tells of each. */
final class Sealing {
  private final BlockStore store;
  private final CoreOutput output;
  private final Command reply = new Command();

  long publishedBytes;

  Sealing(BlockStore store, CoreOutput output) {
    this.store = store;
    this.output = output;
  }

  /** Copies the checksums of a publish out of the part's plan, before its space is used again. */
  void takeChecksums(Operation op) {
    MemorySegment memory = op.session.table.memory();
    long at = GrantTable.bankAt(op.planOffset);
    for (int i = op.partFirst; op.publish && i < op.partEnd; i++) {
      if (Operation.isOwned(op.rows[i])) {
        store.setCrc(op.rows[i], PlanEntry.crc(memory, at));
        at += PlanEntry.BYTES;
      }
    }
  }

  /**
   * Seals the blocks of a publish all of whose parts have drained whole. Those that others have
   * published meanwhile become held, those of a cleared namespace refused.
   */
  void seal(Operation op) {
    for (int s = op.sectionCount - 1; s >= 0; s--) {
      sealSection(op, s);
    }
  }

  /** Seals the blocks of a section, each linked to the one before it. */
  private void sealSection(Operation op, int section) {
    int first = op.sections[3 * section];
    int end = section + 1 < op.sectionCount ? op.sections[3 * (section + 1)] : op.count;
    Namespaces.Space space = op.registration.space(op.sections[3 * section + 1]);
    int parent = op.parent(section);
    parent = parent < 0 ? -1 : store.residentIn(space, parent);
    for (int i = first; i < end; i++) {
      parent = sealBlock(op, i, space, parent, end - i);
    }
  }

  /**
   * Seals one block behind its parent and returns the resident row that is the parent of the next,
   * or -1.
   */
  private int sealBlock(Operation op, int block, Namespaces.Space space, int parent, int left) {
    int code = op.rows[block];
    if (Operation.isHeld(code)) {
      return store.residentIn(space, Operation.heldRow(code));
    }
    if (!Operation.isOwned(code)) {
      return -1;
    }
    int twin = store.residentTwin(code);
    if (store.seal(code, parent, left)) {
      publishedBytes += space.blockBytes;
      op.session.publishedBlocks++;
      op.session.publishedBytes += space.blockBytes;
      return code;
    }
    if (twin < 0) { // cleared while it was being published
      op.rows[block] = Operation.REFUSED;
      op.refused++;
      return -1;
    }
    op.rows[block] = Operation.held(twin);
    op.held++;
    store.pin(twin); // as every block that is held, to the end of the operation
    return twin;
  }

  /** Tells the engine of each block of a publish, before its record says Reaped or at that time. */
  void sendReply(Operation op, boolean sealed) {
    if (!op.publish || op.rows == null || op.count == 0 || op.session.lost) {
      return;
    }
    ByteRing.Producer ring = output.replyBytes(op.session.slot, ChannelDescriptor.PUBLISH_REPLIES);
    int bytes = (int) PublishReply.byteSize(op.count);
    long at = ring.tryClaim(bytes);
    if (at < 0) {
      return; // the record decides
    }
    PublishReply.writeHeader(ring.memory(), at, op.count);
    for (int i = 0; i < op.count; i++) {
      PublishReply.putResult(ring.memory(), at, i, resultOf(op.rows[i], sealed));
    }
    reply.set(Opcode.PUBLISH, Status.OK.code(), op.requestId, 0, 0, 0);
    ring.commit(bytes, reply);
    output.reply(op.session.slot, ChannelDescriptor.PUBLISH_REPLIES, reply);
  }

  private static int resultOf(int code, boolean sealed) {
    if (Operation.isOwned(code)) {
      return sealed ? PublishReply.STORED : PublishReply.NOT_STORED;
    }
    return Operation.isHeld(code) ? PublishReply.HELD : PublishReply.REFUSED_POOL_FULL;
  }
}
