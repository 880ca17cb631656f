package io.orbitkv.client;

/**
 * Memory of an engine that drives its sessions step by step, see {@link SteppedSession}: the pages
 * of group 0, the claims on them and the budget of its publishes. They outlive sessions, as those
 * of a process do. Belongs to one thread.
 */
public final class SteppedMemory implements AutoCloseable {
  final GroupMemory[] groups;
  final PageClaims[] claims;
  final SaveBudget budget = new SaveBudget();
  private final int[] allPages;

  /**
   * Checks the pages.
   *
   * @param group group 0
   * @throws OrbitKvException naming the value and the rule
   */
  public SteppedMemory(GroupSpec group) {
    groups = new GroupMemory[] {GroupMemory.of(group, true)};
    claims = new PageClaims[] {PageClaims.enter(groups[0].address())};
    allPages = new int[group.pages()];
    for (int page = 0; page < allPages.length; page++) {
      allPages[page] = page;
    }
  }

  /** Publishes that are not settled. */
  public int publishesCharged() {
    return budget.operations();
  }

  /** True when no page is target of an unfinished restore. */
  public boolean isUnclaimed() {
    return claims[0].isUnclaimed();
  }

  /** The memory is gone, with whatever was under way in it. */
  @Override
  public void close() {
    claims[0].release(allPages);
    claims[0].leave();
  }
}
