/**
 * The simulator: one real Manager core and many real engine state machines on plain memory, in
 * virtual time, with seeded faults. {@link io.orbitkv.bench.simulator.Simulation} runs seeds and
 * shrinks what fails; {@link io.orbitkv.bench.simulator.World} is one run; {@link
 * io.orbitkv.bench.simulator.Kind} lists what can happen in a step. Nothing here reads a clock.
 */
package io.orbitkv.bench.simulator;
