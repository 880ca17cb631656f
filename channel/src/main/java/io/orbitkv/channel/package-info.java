/**
 * What an engine process and its Manager read and write in shared memory, and what they say over
 * the socket.
 *
 * <p>{@link io.orbitkv.channel.ChannelDescriptor} lays out the channel memfd: control lines, four
 * {@link io.orbitkv.channel.CommandRing}s and a {@link io.orbitkv.channel.ByteRing} beside each.
 * {@link io.orbitkv.channel.GrantTable} lays out the grant memfd: records with a {@link
 * io.orbitkv.channel.GrantWord} moved by compare-and-set between {@link
 * io.orbitkv.channel.GrantState}s, and the bank of {@link io.orbitkv.channel.PlanEntry}s. The
 * variable-length data of commands are {@link io.orbitkv.channel.LookupRequest}, {@link
 * io.orbitkv.channel.LookupReply}, {@link io.orbitkv.channel.RestoreRequest}, {@link
 * io.orbitkv.channel.PublishRequest} and {@link io.orbitkv.channel.PublishReply}. {@link
 * io.orbitkv.channel.StateDescriptor} makes a namespace. Lifecycle frames are protobuf messages
 * behind a {@link io.orbitkv.channel.FrameHeader}.
 *
 * <p>Everything here works on memory segments; nothing makes a system call. All layouts are
 * little-endian.
 */
package io.orbitkv.channel;
