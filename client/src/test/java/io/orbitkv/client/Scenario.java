package io.orbitkv.client;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;

/** What a {@link GrantWorld} is made of, what may happen in it, and which rule is weakened. */
final class Scenario {
  /** What may happen beside the protocol's own steps; each at most once. */
  enum Event {
    SOCKET_0_ENDS,
    SOCKET_1_ENDS,
    ENGINE_0_DIES,
    ENGINE_1_DIES,
    MANAGER_DIES,
    MANAGER_STOPS,
    UNREGISTER,
    COMMAND_REPEATED,
    COMMAND_LOST,
    DIRTY_BIT_LOST,
    CLEAR,
    LEASE_ENDS,
    TIME_PASSES
  }

  /** When session 1 begins, and whose it is. */
  enum Second {
    /** There is none. */
    NONE,
    /** With session 0, of another process. */
    TOGETHER,
    /** Once the Manager has given the slot of session 0 back, of another process. */
    OTHER_PROCESS,
    /** Once session 0 is over, of the same process. */
    SAME_PROCESS,
    /** Once the Manager has died and another has started, of the same process. */
    RESTART
  }

  /** A rule that is broken on purpose; those that a table can break are kinds of tables. */
  enum Weakness {
    SOCKET_END_IS_EXIT,
    DEVICE_EXIT_IS_PROOF,
    CANCEL_ENDS_ACTIVE,
    SESSION_END_ENDS_ACTIVE,
    ENGINE_IS_NOT_TOLD,
    PINS_STAY_WITH_THE_ASKER,
    CLOSED_SESSION_IS_NOT_READ,
    CLAIM_HAS_NO_BOUND,
    UNREGISTER_DOES_NOT_WAIT,
    WORKER_WAITS_FOR_ITS_PART,
    CLAIMS_DIE_WITH_THE_SESSION,
    OLD_ARENAS_ARE_ADOPTED,
    TABLE_IS_GIVEN_ON,
    NO_RECHECK
  }

  /**
   * One operation.
   *
   * @param publish else a restore
   * @param session 0 or 1
   * @param key first of its block hashes; the bytes of a block follow from it
   * @param page first page
   */
  record Op(boolean publish, int session, int key, int page, int blocks) {}

  private static final int RESTORE_PAGE = 40;
  private static final int PUBLISH_PAGE = 80;
  private static final int PUBLISH_KEY = 100;

  final List<Op> ops;
  final EnumSet<Event> events = EnumSet.noneOf(Event.class);
  final EnumSet<Weakness> weak = EnumSet.noneOf(Weakness.class);
  GrantWorld.Tables tables = GrantWorld.Tables.real();
  Second second = Second.NONE;
  int maxEvents = 1;
  boolean cancels;
  boolean rechecks;
  boolean exitProves = true;
  boolean isObserved = true;
  boolean fullBank;
  boolean oneRecord;
  boolean registersAgain;
  int asker;

  private Scenario(Op... ops) {
    this.ops = List.of(ops);
  }

  static Scenario of(Op... ops) {
    return new Scenario(ops);
  }

  static Op restore(int session, int blocks) {
    return new Op(false, session, 0, RESTORE_PAGE, blocks);
  }

  static Op publish(int session, int blocks) {
    return new Op(true, session, PUBLISH_KEY, PUBLISH_PAGE, blocks);
  }

  /** A publish from the pages that {@link #restore} writes. */
  static Op publishOfRestored(int session, int blocks) {
    return new Op(true, session, PUBLISH_KEY, RESTORE_PAGE, blocks);
  }

  /** A publish of other keys, from other pages, than {@link #publish}. */
  static Op otherPublish(int session, int blocks) {
    return new Op(true, session, PUBLISH_KEY + 20, PUBLISH_PAGE + 20, blocks);
  }

  /** These events may happen, one of them in a run. */
  Scenario may(Event... more) {
    events.addAll(Arrays.asList(more));
    return this;
  }

  /** So many of the events may happen in a run. */
  Scenario atMost(int count) {
    maxEvents = count;
    return this;
  }

  /** Each operation may be cancelled. */
  Scenario cancels() {
    cancels = true;
    return this;
  }

  /** The Manager may read all records at any time, not only those that are marked. */
  Scenario rechecks() {
    rechecks = true;
    return this;
  }

  Scenario second(Second when) {
    second = when;
    return this;
  }

  /** The end of the process proves nothing about copies under way. */
  Scenario device() {
    exitProves = false;
    return this;
  }

  /** The end of the process can not be observed. */
  Scenario unobserved() {
    isObserved = false;
    exitProves = false;
    return this;
  }

  /** The plan bank has room for one part. */
  Scenario fullBank() {
    fullBank = true;
    return this;
  }

  /** Operations of a session use one grant record, one after the other. */
  Scenario oneRecord() {
    oneRecord = true;
    return this;
  }

  /** Session 0 registers again once it has unregistered. */
  Scenario registersAgain() {
    registersAgain = true;
    return this;
  }

  /** Session 1 has asked for the leases. */
  Scenario askedBySessionOne() {
    asker = 1;
    return this;
  }

  Scenario weak(Weakness weakness) {
    weak.add(weakness);
    return this;
  }

  Scenario tables(GrantWorld.Tables weakened) {
    tables = weakened;
    return this;
  }

  boolean is(Weakness weakness) {
    return weak.contains(weakness);
  }

  @Override
  public String toString() {
    return ops + ", events=" + events + ", at most=" + maxEvents + ", second=" + second;
  }
}
