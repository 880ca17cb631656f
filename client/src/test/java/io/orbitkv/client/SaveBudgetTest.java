package io.orbitkv.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.orbitkv.channel.Status;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SaveBudgetTest {
  private final SaveBudget budget = new SaveBudget();

  private void assertFull(long bytes, String named) {
    assertThatThrownBy(() -> budget.charge(bytes, 1))
        .isInstanceOfSatisfying(
            SaveNotSubmittedException.class, e -> assertThat(e.status()).isEqualTo(Status.LIMIT))
        .hasMessageContaining(named);
  }

  @Test
  void shouldAdmitSoManyOperationsAndNoMore() {
    List<SaveBudget.Charge> charges = new ArrayList<>();
    for (int i = 0; i < SaveBudget.MAX_OPERATIONS; i++) {
      charges.add(budget.charge(1, 1));
    }
    assertFull(1, "operations=1025, limit=1024");
    charges.removeLast().release();
    charges.add(budget.charge(1, 1));
    charges.forEach(SaveBudget.Charge::release);
    assertThat(budget.operations()).isZero();
    assertThat(budget.bytes()).isZero();
  }

  @Test
  void shouldAdmitSoManyBytesAndNoMore() {
    SaveBudget.Charge all = budget.charge(SaveBudget.MAX_BYTES, 1);
    assertFull(1, "bytes=33554433, limit=33554432");
    all.release();
    assertThat(budget.bytes()).isZero();
  }

  @Test
  void shouldStayChargedUntilTheLastOwnerLetsGo() {
    SaveBudget.Charge charge = budget.charge(5, 2);
    charge.release();
    assertThat(budget.operations()).isEqualTo(1);
    assertThat(budget.bytes()).isEqualTo(5);
    charge.release();
    assertThat(budget.operations()).isZero();
  }
}
