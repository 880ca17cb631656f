/**
 * The capacity planner: {@link io.orbitkv.bench.planner.Planner} plays a trace over many cache
 * sizes, on the real core ({@link io.orbitkv.bench.planner.CoreCache}) and on plain simulators of
 * other policies, and {@link io.orbitkv.bench.planner.Plan} holds, prints and draws what came of
 * it.
 */
package io.orbitkv.bench.planner;
