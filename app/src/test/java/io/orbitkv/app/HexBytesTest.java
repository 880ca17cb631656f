package io.orbitkv.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.TypeConversionException;

class HexBytesTest {
  @ParameterizedTest
  @ValueSource(strings = {"", "ab", "abc", "xy"})
  void shouldTakeNothingButAWholeDigestForANamespace(String value) {
    assertThatThrownBy(() -> new HexBytes.Namespace().convert(value))
        .isInstanceOf(TypeConversionException.class)
        .hasMessageContaining("\"" + value + "\"");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 15, 33})
  void shouldRefuseHashesOfOtherLengths(int bytes) {
    assertThatThrownBy(() -> new HexBytes.Hash().convert("ab".repeat(bytes)))
        .isInstanceOf(TypeConversionException.class)
        .hasMessageContaining("digits=" + 2 * bytes + ", allowed=32..64");
  }

  @Test
  void shouldReadDigits() {
    assertThat(new HexBytes.Namespace().convert("0aF0".repeat(16)).bytes())
        .hasSize(32)
        .startsWith(0x0a, 0xf0);
    assertThat(new HexBytes.Hash().convert("ab".repeat(16)).bytes()).hasSize(16);
  }
}
