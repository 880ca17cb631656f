package io.orbitkv.bench.simulator;

import io.orbitkv.channel.Status;
import io.orbitkv.client.LookupResult;

/** What happened, over one run or many. */
final class Counts {
  final Tally<Kind> faults = new Tally<>(Kind.class);
  final Tally<Status> publishes = new Tally<>(Status.class);
  final Tally<Status> restores = new Tally<>(Status.class);
  final Tally<LookupResult.Outcome> lookups = new Tally<>(LookupResult.Outcome.class);
  long lookupsRefused;
  long lookupsAbandoned;
  long poolFull;
  long retained;
  long evictions;
  long verifiedBlocks;
  long blocksMoved;
  long ssdLoads;
  long steps;
  long runs;

  void add(Counts other) {
    faults.add(other.faults);
    publishes.add(other.publishes);
    restores.add(other.restores);
    lookups.add(other.lookups);
    lookupsRefused += other.lookupsRefused;
    lookupsAbandoned += other.lookupsAbandoned;
    poolFull += other.poolFull;
    retained += other.retained;
    evictions += other.evictions;
    verifiedBlocks += other.verifiedBlocks;
    blocksMoved += other.blocksMoved;
    ssdLoads += other.ssdLoads;
    steps += other.steps;
    runs += other.runs;
  }
}
