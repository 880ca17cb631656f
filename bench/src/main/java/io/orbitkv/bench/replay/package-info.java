/**
 * Plays request traces against a running Manager and compares every restored byte. {@link
 * io.orbitkv.bench.replay.Trace} is what is played, {@link io.orbitkv.bench.replay.Replay} plays it
 * with the options of {@link io.orbitkv.bench.replay.ReplayOptions}, {@link
 * io.orbitkv.bench.replay.ReplayResult} says what came of it. {@link
 * io.orbitkv.bench.replay.SoakBench} plays on all sessions for long, to see that nothing grows.
 */
package io.orbitkv.bench.replay;
