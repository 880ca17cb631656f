package io.orbitkv.bench.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** Requests of known kinds, from seeds. Blocks are numbered as they come. */
final class RandomRequests {
  private static final long SEED = 7;

  private final SplittableRandom random = new SplittableRandom(SEED);
  private final List<int[]> requests = new ArrayList<>();
  private int blocks;

  private RandomRequests() {}

  /** Chains of equal length without common blocks. */
  static List<int[]> chains(int firstBlock, int count, int length) {
    return IntStream.range(0, count)
        .mapToObj(i -> IntStream.range(firstBlock + i * length, firstBlock + (i + 1) * length))
        .map(IntStream::toArray)
        .toList();
  }

  /** Sums of shares that fall with the rank to the power of {@code skew}; the last is 1. */
  static double[] zipf(int count, double skew) {
    double[] sums = new double[count];
    double sum = 0;
    for (int i = 0; i < count; i++) {
      sum += Math.pow(i + 1.0, -skew);
      sums[i] = sum;
    }
    double all = sum;
    return Arrays.stream(sums).map(each -> each / all).toArray();
  }

  /** Draws a rank. */
  static int pick(double[] sums, SplittableRandom random) {
    int at = Arrays.binarySearch(sums, random.nextDouble());
    return Math.min(sums.length - 1, at < 0 ? -at - 1 : at);
  }

  private List<int[]> newChains(int count, int length) {
    List<int[]> chains = chains(blocks, count, length);
    blocks += count * length;
    return chains;
  }

  private void once(int length) {
    requests.add(IntStream.range(blocks, blocks + length).toArray());
    blocks += length;
  }

  private void draw(List<int[]> chains, double[] shares) {
    requests.add(chains.get(pick(shares, random)));
  }

  private DenseTrace trace() {
    return new DenseTrace(
        List.copyOf(requests), blocks, requests.stream().mapToLong(ids -> ids.length).sum());
  }

  /** Chains by popularity, between them twice as many blocks that never come again. */
  static DenseTrace scan() {
    RandomRequests made = new RandomRequests();
    List<int[]> often = made.newChains(200, 20);
    double[] shares = zipf(often.size(), 0.8);
    for (int i = 0; i < 3000; i++) {
      made.draw(often, shares);
      made.once(40);
    }
    return made.trace();
  }

  /** The same chains in the same order, ten times. */
  static DenseTrace loop() {
    RandomRequests made = new RandomRequests();
    List<int[]> all = made.newChains(400, 25);
    for (int i = 0; i < 10; i++) {
      made.requests.addAll(all);
    }
    return made.trace();
  }

  /** Chains by popularity. */
  static DenseTrace popular() {
    RandomRequests made = new RandomRequests();
    List<int[]> all = made.newChains(4000, 12);
    double[] shares = zipf(all.size(), 1.0);
    for (int i = 0; i < 12_000; i++) {
      made.draw(all, shares);
    }
    return made.trace();
  }

  /** Shared heads by popularity, each time with a tail that never comes again. */
  static DenseTrace sharedPrompts() {
    RandomRequests made = new RandomRequests();
    List<int[]> heads = made.newChains(50, 30);
    double[] shares = zipf(heads.size(), 1.0);
    for (int i = 0; i < 5000; i++) {
      int[] head = heads.get(pick(shares, made.random));
      int[] request = Arrays.copyOf(head, head.length + 10 + made.random.nextInt(40));
      for (int at = head.length; at < request.length; at++) {
        request[at] = made.blocks++;
      }
      made.requests.add(request);
    }
    return made.trace();
  }

  /** Chains by popularity, all others from the middle on. */
  static DenseTrace shift() {
    RandomRequests made = new RandomRequests();
    for (int half = 0; half < 2; half++) {
      List<int[]> all = made.newChains(2000, 15);
      double[] shares = zipf(all.size(), 0.9);
      for (int i = 0; i < 6000; i++) {
        made.draw(all, shares);
      }
    }
    return made.trace();
  }

  /** Conversations that grow with each turn and end after some. */
  static DenseTrace conversations() {
    RandomRequests made = new RandomRequests();
    List<int[]> open = new ArrayList<>();
    for (int i = 0; i < 8000; i++) {
      boolean begins = open.size() < 60 || made.random.nextInt(5) == 0;
      int at = begins ? open.size() : made.random.nextInt(open.size());
      int[] before = begins ? new int[0] : open.remove(at);
      int[] turn = Arrays.copyOf(before, before.length + 3 + made.random.nextInt(18));
      for (int j = before.length; j < turn.length; j++) {
        turn[j] = made.blocks++;
      }
      made.requests.add(turn);
      if (begins || made.random.nextInt(4) > 0) {
        open.add(turn);
      }
    }
    return made.trace();
  }
}
