package io.orbitkv.channel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class GrantTableTest {
  private static final int SLOT = 17;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment region = arena.allocate(GrantTable.REGION_BYTES, 4096);
  private final GrantTable table = GrantTable.format(region);

  @AfterEach
  void close() {
    arena.close();
  }

  private void engine(GrantState next) {
    assertThat(table.tryEngineMove(SLOT, table.wordAcquire(SLOT), next)).isTrue();
  }

  private void manager(GrantState next) {
    assertThat(table.tryManagerMove(SLOT, table.wordAcquire(SLOT), next)).isTrue();
  }

  @Test
  void shouldWalkOneOperationAndUseSlotAgainWithNextGeneration() {
    long first = table.tryReserve(SLOT, GrantTable.RESTORE);
    assertThat(first).isEqualTo(GrantWord.of(1, 0, GrantState.RESERVED));
    assertThat(table.tryReserve(SLOT, GrantTable.PUBLISH)).as("slot in use").isEqualTo(-1);
    assertThat(table.kind(SLOT)).isEqualTo(GrantTable.RESTORE);

    manager(GrantState.PREPARING);
    manager(GrantState.GRANTED);
    engine(GrantState.ACTIVE);
    engine(GrantState.PART_DRAINED);
    long word = table.wordAcquire(SLOT);
    assertThat(table.tryManagerMove(SLOT, word, GrantState.GRANTED, 1)).isTrue();
    assertThat(table.wordAcquire(SLOT)).isEqualTo(GrantWord.of(1, 1, GrantState.GRANTED));
    engine(GrantState.ACTIVE);
    engine(GrantState.DRAINED);
    manager(GrantState.REAPED);
    assertThat(table.tryReserve(SLOT, GrantTable.PUBLISH)).as("not acknowledged").isEqualTo(-1);
    engine(GrantState.ACKNOWLEDGED);

    assertThat(table.tryReserve(SLOT, GrantTable.PUBLISH))
        .isEqualTo(GrantWord.of(2, 0, GrantState.RESERVED));
    assertThat(table.kind(SLOT)).isEqualTo(GrantTable.PUBLISH);
    assertThat(table.wordAcquire(SLOT - 1)).isZero();
    assertThat(table.wordAcquire(SLOT + 1)).isZero();
  }

  @Test
  void shouldMoveNothingWithWordOfEarlierGeneration() {
    long reserved = table.tryReserve(SLOT, GrantTable.RESTORE);
    engine(GrantState.ACKNOWLEDGED);
    table.tryReserve(SLOT, GrantTable.RESTORE);
    long now = table.wordAcquire(SLOT);

    assertThat(table.tryManagerMove(SLOT, reserved, GrantState.PREPARING)).isFalse();
    assertThat(table.tryEngineMove(SLOT, reserved, GrantState.ACKNOWLEDGED)).isFalse();
    assertThat(table.wordAcquire(SLOT)).isEqualTo(now);
  }

  @Test
  void shouldMoveNothingWithWordOfEarlierPart() {
    table.tryReserve(SLOT, GrantTable.PUBLISH);
    manager(GrantState.PREPARING);
    manager(GrantState.GRANTED);
    long granted = table.wordAcquire(SLOT);
    engine(GrantState.ACTIVE);
    long active = table.wordAcquire(SLOT);
    engine(GrantState.PART_DRAINED);
    long drained = table.wordAcquire(SLOT);
    assertThat(table.tryManagerMove(SLOT, drained, GrantState.GRANTED, 1)).isTrue();
    long now = table.wordAcquire(SLOT);

    assertThat(table.tryManagerMove(SLOT, granted, GrantState.REVOKED)).isFalse();
    assertThat(table.tryEngineMove(SLOT, granted, GrantState.ACTIVE)).isFalse();
    assertThat(table.tryEngineMove(SLOT, active, GrantState.DRAINED)).isFalse();
    assertThat(table.tryEngineMove(SLOT, drained, GrantState.DRAINED)).isFalse();
    assertThat(table.wordAcquire(SLOT)).isEqualTo(now);
  }

  @Test
  void shouldRefuseMovesOfTheOtherSide() {
    long word = table.tryReserve(SLOT, GrantTable.RESTORE);

    assertThatThrownBy(() -> table.tryEngineMove(SLOT, word, GrantState.PREPARING))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("from=RESERVED, to=PREPARING");
    assertThatThrownBy(() -> table.tryManagerMove(SLOT, word, GrantState.ACKNOWLEDGED))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("from=RESERVED, to=ACKNOWLEDGED");
    assertThatThrownBy(() -> table.tryManagerMove(SLOT, 0xf, GrantState.REAPED))
        .as("a state that is none")
        .isInstanceOf(IllegalStateException.class);
    assertThat(table.wordAcquire(SLOT)).isEqualTo(word);
  }

  @Test
  void shouldLetOneSideWinGranted()
      throws InterruptedException, ExecutionException, TimeoutException {
    CyclicBarrier start = new CyclicBarrier(2);
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      for (int slot = 0; slot < GrantTable.RECORDS; slot++) {
        int raced = slot;
        table.tryManagerMove(
            slot, table.tryReserve(slot, GrantTable.RESTORE), GrantState.PREPARING);
        table.tryManagerMove(slot, table.wordAcquire(slot), GrantState.GRANTED);
        long granted = table.wordAcquire(slot);

        Future<Boolean> engine =
            threads.submit(() -> {
              start.await(30, TimeUnit.SECONDS);
              return table.tryEngineMove(raced, granted, GrantState.ACTIVE);
            });
        Future<Boolean> manager =
            threads.submit(() -> {
              start.await(30, TimeUnit.SECONDS);
              return table.tryManagerMove(raced, granted, GrantState.REVOKED);
            });

        boolean engineWon = engine.get(30, TimeUnit.SECONDS);
        assertThat(manager.get(30, TimeUnit.SECONDS)).isEqualTo(!engineWon);
        assertThat(GrantWord.state(table.wordAcquire(slot)))
            .isEqualTo(engineWon ? GrantState.ACTIVE : GrantState.REVOKED);
      }
    }
  }

  @Test
  void shouldKeepEveryDirtyBitOfTwoThreads()
      throws InterruptedException, ExecutionException, TimeoutException {
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<?>> markers = new ArrayList<>();
      for (int parity = 0; parity < 2; parity++) {
        int first = parity;
        markers.add(
            threads.submit(() -> {
              for (int slot = first; slot < GrantTable.RECORDS; slot += 2) {
                table.markDirty(slot);
              }
            }));
      }
      for (Future<?> marker : markers) {
        marker.get(30, TimeUnit.SECONDS);
      }
    }

    assertThat(table.drainsAcquire()).isEqualTo(GrantTable.RECORDS);
    for (int word = 0; word < GrantTable.DIRTY_WORDS; word++) {
      assertThat(table.takeDirty(word)).isEqualTo(-1L);
    }
  }

  @Test
  void shouldRefuseSlotsOutsideTable() {
    for (int slot : new int[] {-1, GrantTable.RECORDS, Integer.MAX_VALUE}) {
      assertThatThrownBy(() -> table.wordAcquire(slot))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  private String written(String error) {
    table.setOutcome(SLOT, Status.LIMIT, 0, 0, 0, error);
    return table.error(SLOT);
  }

  @Test
  void shouldCutErrorTextAtCharacterBoundary() {
    assertThat(written("x".repeat(88))).isEqualTo("x".repeat(88));
    assertThat(written("x".repeat(89))).isEqualTo("x".repeat(88));
    assertThat(written("ü".repeat(44))).isEqualTo("ü".repeat(44));
    assertThat(written("x" + "ü".repeat(44))).isEqualTo("x" + "ü".repeat(43));
    assertThat(written("€".repeat(30))).isEqualTo("€".repeat(29));
    assertThat(written("😀".repeat(23))).isEqualTo("😀".repeat(22));
    assertThat(written("xyz" + "😀".repeat(22))).isEqualTo("xyz" + "😀".repeat(21));
    assertThat(written("")).isEmpty();
  }

  @Test
  void shouldLeaveEngineFieldsWhenErrorIsLong() {
    table.setEngineResult(SLOT, Status.OK, 1, 2, 3);
    table.setOutcome(SLOT, Status.LIMIT, 4, 5, 6, "€".repeat(500));

    assertThat(table.error(SLOT).getBytes(StandardCharsets.UTF_8)).hasSize(87);
    assertThat(table.engineStatus(SLOT)).isEqualTo(Status.OK);
    assertThat(table.entriesDone(SLOT)).isEqualTo(1);
    assertThat(table.copyNs(SLOT)).isEqualTo(2);
  }

  @Test
  void shouldBoundErrorTextOfTheOtherProcess() {
    written("x".repeat(88));
    long errorBytesAt = GrantTable.TABLE_OFFSET + SLOT * 192L + GrantTable.ERROR_BYTES;

    for (int bytes : new int[] {89, Integer.MAX_VALUE}) {
      Memory.putInt(region, errorBytesAt, bytes);
      assertThat(table.error(SLOT)).hasSize(88);
    }
    Memory.putInt(region, errorBytesAt, -1);
    assertThat(table.error(SLOT)).isEmpty();
  }

  @Test
  void shouldReadUnknownStatusAsInternal() {
    long statusAt = GrantTable.TABLE_OFFSET + SLOT * 192L + GrantTable.STATUS;
    for (int code : new int[] {-1, 21, Integer.MIN_VALUE}) {
      Memory.putInt(region, statusAt, code);
      assertThat(table.status(SLOT)).isEqualTo(Status.INTERNAL);
    }
  }

  private Status openStatus(MemorySegment other) {
    return catchThrowableOfType(ProtocolException.class, () -> GrantTable.open(other)).status();
  }

  @Test
  void shouldOpenOnlyRegionOfItsVersion() {
    assertThat(GrantTable.open(region)).isNotNull();
    assertThat(openStatus(region.asSlice(0, GrantTable.REGION_BYTES - 1)))
        .isEqualTo(Status.INVALID);
    for (long offset : new long[] {0, GrantTable.RECORDS_OFFSET, GrantTable.BANK_BYTES_OFFSET}) {
      byte was = Memory.getByte(region, offset);
      Memory.putByte(region, offset, (byte) ~was);
      assertThat(openStatus(region)).as("offset %d", offset).isEqualTo(Status.INVALID);
      Memory.putByte(region, offset, was);
    }
    for (int version : new int[] {0, Protocol.CHANNEL_VERSION + 1, -1}) {
      Memory.putInt(region, GrantTable.VERSION_OFFSET, version);
      assertThat(openStatus(region)).isEqualTo(Status.VERSION_MISMATCH);
    }
  }
}
