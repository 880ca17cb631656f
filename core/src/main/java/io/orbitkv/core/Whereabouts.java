package io.orbitkv.core;

import io.orbitkv.channel.MissReason;

/**
 * Where a block of one group is, or why it is nowhere.
 *
 * @param group group of the namespace; −1 when the namespace is not known
 * @param inDram whether lookups find it in DRAM
 * @param arena its arena there
 * @param offset where it begins in the arena
 * @param holders leases and operations that hold it there
 * @param isPublished whether it is in neither, and being published
 * @param onSsd whether it is on SSD
 * @param loading whether it is on its way from there
 * @param reachable false when its file does not answer
 * @param segment its segment there
 * @param page where it begins in the segment, in pages
 * @param reason why it is nowhere; NONE when it is somewhere
 * @param ageSeconds seconds since that came about; −1 when that is not known
 */
public record Whereabouts(
    int group,
    boolean inDram,
    int arena,
    long offset,
    int holders,
    boolean isPublished,
    boolean onSsd,
    boolean loading,
    boolean reachable,
    int segment,
    int page,
    MissReason reason,
    int ageSeconds) {}
