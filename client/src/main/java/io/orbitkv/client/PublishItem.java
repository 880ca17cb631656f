package io.orbitkv.client;

/**
 * Blocks of one group that follow each other in a chain, and where their bytes are.
 *
 * @param group group id
 * @param position position of the first block in its chain
 * @param parent hash of the block before the first one; null at position 0
 * @param hashes hash of each block
 * @param pages source page of each block
 */
@SuppressWarnings("ArrayRecordComponent") // read once, when the command is written
public record PublishItem(
    int group, int position, byte[] parent, BlockHashes hashes, int[] pages) {}
