package io.orbitkv.bench.replay;

import java.nio.file.Path;

/**
 * How a trace is played.
 *
 * @param socket socket of the Manager
 * @param blockBytes bytes of each block
 * @param seed of the blocks' hashes and bytes
 * @param progress whether to draw a progress bar on standard error
 */
public record ReplayOptions(Path socket, int blockBytes, long seed, boolean progress) {}
