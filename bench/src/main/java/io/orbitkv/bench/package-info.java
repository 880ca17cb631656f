/**
 * Benchmarks and trace replay. {@link io.orbitkv.bench.Benches} runs benchmarks by name; each gives
 * {@link io.orbitkv.bench.BenchCase}s, measured in interleaved rounds beside a reference ({@link
 * io.orbitkv.bench.Rounds}, {@link io.orbitkv.bench.Reference}) and collected in a {@link
 * io.orbitkv.bench.BenchReport}. {@link io.orbitkv.bench.Engine} is the smallest engine, {@link
 * io.orbitkv.bench.ManagerProcess} a Manager as a child process.
 */
package io.orbitkv.bench;
