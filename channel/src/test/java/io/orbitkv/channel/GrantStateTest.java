package io.orbitkv.channel;

import static io.orbitkv.channel.GrantState.ACKNOWLEDGED;
import static io.orbitkv.channel.GrantState.ACTIVE;
import static io.orbitkv.channel.GrantState.CANCEL_REQUESTED;
import static io.orbitkv.channel.GrantState.DRAINED;
import static io.orbitkv.channel.GrantState.FREE;
import static io.orbitkv.channel.GrantState.GRANTED;
import static io.orbitkv.channel.GrantState.PART_DRAINED;
import static io.orbitkv.channel.GrantState.PREPARING;
import static io.orbitkv.channel.GrantState.REAPED;
import static io.orbitkv.channel.GrantState.RESERVED;
import static io.orbitkv.channel.GrantState.REVOKED;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.function.BiPredicate;
import org.junit.jupiter.api.Test;

class GrantStateTest {
  private record Move(GrantState from, GrantState to) {}

  private static final List<Move> ENGINE_MOVES =
      List.of(
          new Move(FREE, RESERVED),
          new Move(ACKNOWLEDGED, RESERVED),
          new Move(RESERVED, ACKNOWLEDGED),
          new Move(PREPARING, CANCEL_REQUESTED),
          new Move(GRANTED, ACTIVE),
          new Move(ACTIVE, PART_DRAINED),
          new Move(ACTIVE, DRAINED),
          new Move(PART_DRAINED, DRAINED),
          new Move(REAPED, ACKNOWLEDGED));

  private static final List<Move> MANAGER_MOVES =
      List.of(
          new Move(RESERVED, PREPARING),
          new Move(PREPARING, GRANTED),
          new Move(PREPARING, REAPED),
          new Move(CANCEL_REQUESTED, REAPED),
          new Move(GRANTED, REVOKED),
          new Move(ACTIVE, REAPED),
          new Move(PART_DRAINED, GRANTED),
          new Move(PART_DRAINED, REAPED),
          new Move(DRAINED, REAPED),
          new Move(REVOKED, REAPED));

  private static List<Move> allowed(BiPredicate<GrantState, GrantState> may) {
    List<Move> moves = new ArrayList<>();
    for (GrantState from : GrantState.values()) {
      for (GrantState to : GrantState.values()) {
        if (may.test(from, to)) {
          moves.add(new Move(from, to));
        }
      }
    }
    return moves;
  }

  @Test
  void shouldAllowEngineExactlyItsMoves() {
    assertThat(allowed(GrantState::engineMayMoveTo))
        .containsExactlyInAnyOrderElementsOf(ENGINE_MOVES);
  }

  @Test
  void shouldAllowManagerExactlyItsMoves() {
    assertThat(allowed(GrantState::managerMayMoveTo))
        .containsExactlyInAnyOrderElementsOf(MANAGER_MOVES);
  }

  @Test
  void shouldGiveNoMoveToBothSides() {
    assertThat(ENGINE_MOVES).doesNotContainAnyElementsOf(MANAGER_MOVES);
  }

  @Test
  void shouldFreePagesOnlyWhereNoAccessCanFollow() {
    EnumSet<GrantState> free = EnumSet.noneOf(GrantState.class);
    Arrays.stream(GrantState.values()).filter(GrantState::pagesFree).forEach(free::add);

    assertThat(free)
        .containsExactlyInAnyOrder(FREE, CANCEL_REQUESTED, DRAINED, REVOKED, REAPED, ACKNOWLEDGED);
  }

  @Test
  void shouldKeepCodes() {
    assertThat(GrantState.values())
        .extracting(GrantState::code)
        .containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    for (GrantState state : GrantState.values()) {
      assertThat(GrantState.of(state.code())).isEqualTo(state);
    }
    for (int code = 11; code < 16; code++) {
      assertThat(GrantState.of(code)).isNull();
    }
  }
}
